"""Detection of different work in the steps of two sides."""
