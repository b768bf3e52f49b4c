"""Names of kernels, CUDA calls, operators and frameworks."""
