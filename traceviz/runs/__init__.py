"""Run folders: list them, make their tables, keep their verdicts."""
