"""Host calls by name and by nesting: their thread, the calls around them, and the meaning of their names."""
