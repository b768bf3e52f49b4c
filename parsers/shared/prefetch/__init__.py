"""Prefetch: run compiled work in background threads while the caller imports modules."""
