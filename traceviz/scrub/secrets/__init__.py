"""Private parts of a trace: recognised, replaced, and searched for again."""
