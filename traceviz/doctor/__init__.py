"""``traceviz doctor``: recording abilities of this machine, and the questions that a trace can answer."""
