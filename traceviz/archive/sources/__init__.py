"""Sources of traces: files, folders, URLs, and archive files."""
