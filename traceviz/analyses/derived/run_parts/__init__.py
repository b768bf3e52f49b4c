"""Division of a run's recorded time: start-up, compilation, steps, validation, saving, and the rest."""
