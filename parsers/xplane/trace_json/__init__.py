"""The trace JSON of TensorFlow's and JAX's profilers, of all versions."""
