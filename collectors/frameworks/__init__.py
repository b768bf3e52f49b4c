"""Collectors inside the program: the profilers of TensorFlow, JAX and PyTorch, and NVTX ranges."""
