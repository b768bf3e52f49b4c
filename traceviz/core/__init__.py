"""Parts without knowledge of traces."""
