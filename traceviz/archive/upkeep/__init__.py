"""Maintenance of an archive: check, removal and export of traces."""
