"""The host: the class of each nanosecond, collectives, blocking copies, and where the program takes a batch."""
