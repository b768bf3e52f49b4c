"""Run folders: list them, make their tables, store their verdicts."""
