"""What strangers wrote, within bounds: errors of libraries in words, JSON, SQLite, Parquet, rows, plausible values."""
