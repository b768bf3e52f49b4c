"""Notebooks: displaying values, and the magic that records a cell."""
