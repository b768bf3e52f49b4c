"""PyTorch's profiler (Kineto), and other traces in the format of Chrome's trace viewer."""
