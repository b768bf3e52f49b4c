"""Calls of the host by name and by nesting: which thread, what inside what, what a name says."""
