"""Facts about the whole capture: its kind, whether the program trains, and the parts that cannot be judged."""
