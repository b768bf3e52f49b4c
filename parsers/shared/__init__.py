"""What several readers need: columns, nesting, text as a stream, rows of SQLite. It knows no format."""
