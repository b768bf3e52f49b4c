"""How figures went from run to run."""
