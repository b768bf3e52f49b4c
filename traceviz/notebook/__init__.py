"""Notebooks: how values are shown in them, and the magic that records a cell."""
