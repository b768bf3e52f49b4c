"""Code that several readers share: columns, nesting, text as a stream, rows of SQLite. It knows no format."""
