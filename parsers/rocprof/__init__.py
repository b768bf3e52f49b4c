"""Recordings of AMD's rocprof and rocprofv3: CSV, JSON and SQLite."""
