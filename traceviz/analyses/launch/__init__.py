"""Interface of host and device: the CUDA API, launches, and waits for the device."""
