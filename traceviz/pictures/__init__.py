"""Timelines and flame graphs, computed before a page draws them."""
