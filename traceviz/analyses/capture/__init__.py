"""What was captured, by whom, and whether it can be trusted."""
