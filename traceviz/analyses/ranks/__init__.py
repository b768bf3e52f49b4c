"""Several ranks: communication between them, and ranks that keep the others waiting."""
