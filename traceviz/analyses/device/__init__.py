"""What the devices did: busy time, kernels, copies, memory, efficiency."""
