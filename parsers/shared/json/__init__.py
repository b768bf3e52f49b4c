"""JSON traces as text: a stream of blocks, the window being scanned, and the walk through events and members."""
