"""What the host did: cores, memory, threads, and calls of the operating system."""
