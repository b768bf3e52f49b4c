"""The tables of a trace: schema, checks at the door, spilling, slicing, and the names of what runs."""
