"""Timelines from tables: lanes, levels of detail, and the events kept of very large traces."""
