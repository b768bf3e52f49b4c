"""Many traces as one collection that can be asked: which runs wait for input, what got slower, what costs most."""
