"""Wrap a run of a program with the profilers that the machine has."""
