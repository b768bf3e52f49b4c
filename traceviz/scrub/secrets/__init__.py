"""What is private in a trace: found, replaced, and searched for again."""
