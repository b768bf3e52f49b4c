"""The host: the class of each nanosecond, its collectives, copies that hold it up, and where it takes a batch."""
