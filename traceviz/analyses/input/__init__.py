"""Whether the program waits for its input, and for which part of it."""
