"""Several ranks: communication between them, and who keeps the others waiting."""
