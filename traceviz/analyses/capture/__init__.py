"""What was captured, by which profilers, and whether it can be trusted."""
