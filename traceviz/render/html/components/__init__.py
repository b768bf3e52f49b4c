"""Blocks of a report as HTML: small functions, independent of the page around them, that need no script."""
