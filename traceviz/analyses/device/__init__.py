"""Work of the devices: busy time, kernels, copies, memory, efficiency."""
