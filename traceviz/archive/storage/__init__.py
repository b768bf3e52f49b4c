"""Storage of an archive: its location, and writing without locks."""
