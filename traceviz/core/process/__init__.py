"""This process: signals, standard streams, temporary files, and the memory that it may take."""
