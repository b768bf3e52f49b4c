"""Stacks of Python and of compiled code, sampled from outside by py-spy."""
