"""A comparison as a report document."""
