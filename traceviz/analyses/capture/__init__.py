"""The capture: its content, its profilers, and whether it can be trusted."""
