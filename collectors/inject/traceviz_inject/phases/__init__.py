"""Phases of a run and parts of its steps."""
