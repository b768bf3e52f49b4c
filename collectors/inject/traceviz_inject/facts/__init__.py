"""Facts of the program for the manifest: frameworks, versions, settings of the training, metrics."""
