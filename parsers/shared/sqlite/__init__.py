"""SQLite databases: the file from outside, its pages, and its tables as Arrow batches."""
