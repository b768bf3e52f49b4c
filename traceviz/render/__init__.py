"""Renderers: each turns a :class:`traceviz.report.Report` into text, without access to traces or files."""
