"""What changed between two sides, by name."""
