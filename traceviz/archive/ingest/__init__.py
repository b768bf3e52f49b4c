"""From a source to a trace of the archive."""
