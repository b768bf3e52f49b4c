"""Traces of several ranks, read as one."""
