"""Devices: their names and ranks, what they did, and how full they were."""
