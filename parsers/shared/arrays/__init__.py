"""Arrays and Arrow columns, with their C code."""
