"""``traceviz doctor``: what this machine can record, and what a trace can answer."""
