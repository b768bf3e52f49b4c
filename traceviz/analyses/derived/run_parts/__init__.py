"""How the recorded time of a whole run divides: start-up, compilation, steps, validation, saving, and the rest."""
