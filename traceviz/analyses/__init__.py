"""Questions asked of a trace. Each analysis is one file and one line in :mod:`traceviz.analyses.registry`."""
