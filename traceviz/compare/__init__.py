"""Comparing runs: is one faster, by how much, how sure is that, and where does the difference come from."""
