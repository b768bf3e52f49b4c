"""Gates: conditions that a run must meet, for continuous integration."""
