"""What the traces of an archive say together."""
