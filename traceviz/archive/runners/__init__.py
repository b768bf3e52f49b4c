"""Runners: apply one function to many traces in this process, in several, or on a cluster."""
