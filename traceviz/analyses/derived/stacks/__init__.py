"""Activity of a program's threads, by line: sampled stacks, or Python functions that a profiler recorded."""
