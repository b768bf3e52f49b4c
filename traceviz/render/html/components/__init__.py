"""Blocks of a report as HTML: small functions that know nothing of the page they are on, and need no script."""
