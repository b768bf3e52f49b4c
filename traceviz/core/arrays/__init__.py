"""Arrays and intervals, with their C code."""
