"""Work of the host: cores, memory, threads, and calls of the operating system."""
