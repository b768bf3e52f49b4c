"""A queryable collection of many traces: which runs wait for input, which got slower, and what costs most."""
