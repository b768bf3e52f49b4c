"""Nsight Systems: reports, and their exports to SQLite and Parquet."""
