"""Trends of figures from run to run."""
