"""One reader per trace format, and the registry that tells formats apart."""
