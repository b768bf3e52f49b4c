"""One reader per trace format, and the registry that recognises formats."""
