"""Renderers: each turns a :class:`traceviz.report.Report` into text, and knows nothing of traces or files."""
