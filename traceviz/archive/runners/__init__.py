"""One function over many traces: in this process, in several, or on a cluster."""
