"""JSON traces as text: a stream of blocks, the window that is looked at, and the walk through events and members."""
