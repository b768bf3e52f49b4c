"""Comparison of runs: which is faster, by how much, how certain that is, and what causes the difference."""
