"""Private parts of a trace: recognition, replacement, and search."""
