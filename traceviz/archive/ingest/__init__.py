"""Conversion of a source to a trace of the archive."""
