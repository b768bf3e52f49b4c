"""Run folders: what ``traceviz collect`` leaves behind, read as one trace."""
