"""Step time in the classes of other tools, so that users recognise familiar figures."""
