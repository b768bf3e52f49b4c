"""Bounded readers for untrusted input: errors of libraries as text, JSON, SQLite, Parquet, event files."""
