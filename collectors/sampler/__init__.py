"""The collector of resources, which samples the program and its machine from a separate process."""
