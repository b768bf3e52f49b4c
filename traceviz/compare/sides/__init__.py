"""Sides of a comparison: load files, runs and tags into sides with steps that match."""
