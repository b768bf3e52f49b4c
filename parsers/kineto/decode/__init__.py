"""Decoding of the text of a Chrome-format trace to columns: compiled, or portable."""
