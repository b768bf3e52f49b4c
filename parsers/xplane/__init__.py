"""The profilers of TensorFlow and JAX: XPlane captures, and their trace JSON."""
