"""Devices: their names and ranks, their work, and how much of their capacity it used."""
