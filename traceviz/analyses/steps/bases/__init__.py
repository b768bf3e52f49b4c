"""Step time in the classes of other tools, so that users recognise the figures that they know."""
