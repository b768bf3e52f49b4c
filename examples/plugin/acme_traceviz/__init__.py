"""An example of a plugin for traceviz."""
