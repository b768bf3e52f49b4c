"""nvprof: its databases, and what it prints."""
