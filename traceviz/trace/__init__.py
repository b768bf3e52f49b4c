"""The tables of a trace: schema, validation, spilling, slicing, and the names of kernels, calls and operators."""
