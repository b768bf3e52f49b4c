"""The recorded program: running it, following its processes, and ending it."""
