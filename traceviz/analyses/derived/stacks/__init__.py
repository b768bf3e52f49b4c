"""What the threads of a program ran, by the line: sampled stacks, or the Python functions that a profiler recorded."""
