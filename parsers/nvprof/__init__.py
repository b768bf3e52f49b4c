"""nvprof: its databases, and its printed output."""
