"""Checking an archive, taking traces out of it, and taking them elsewhere."""
