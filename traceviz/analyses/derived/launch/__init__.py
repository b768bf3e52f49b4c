"""Launches: the call behind each piece of work, first calls, and the contents of graphs."""
