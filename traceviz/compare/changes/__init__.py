"""Changes between two sides, by name."""
