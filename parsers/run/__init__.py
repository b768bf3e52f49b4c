"""Run folders: the output of ``traceviz collect``, read as one trace."""
