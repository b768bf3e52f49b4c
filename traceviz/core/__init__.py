"""Code that does not depend on traces: errors, arrays, processes, files, text, units."""
