"""Code that knows nothing of traces: errors, arrays, processes, files, text, units."""
