"""Samples of the program's Python stacks."""
