"""Reports over all traces of an archive."""
