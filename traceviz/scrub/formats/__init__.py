"""Rewriting of each format without private data."""
