"""Analyses of a trace. Each is one file and one line in :mod:`traceviz.analyses.registry`."""
