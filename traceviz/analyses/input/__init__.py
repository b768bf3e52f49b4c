"""Waits of the program for its input, by stage."""
