"""Whether steps of two sides do the same work, and what differs where they do not."""
