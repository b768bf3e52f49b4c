"""Launches: which call launched which work, which was the first, and what graphs hide."""
