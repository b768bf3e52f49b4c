"""This process: signals, standard streams, temporary files, and its memory limit."""
