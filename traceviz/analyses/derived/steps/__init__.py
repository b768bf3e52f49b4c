"""Training steps of a trace: declared, named, or inferred from repetition."""
