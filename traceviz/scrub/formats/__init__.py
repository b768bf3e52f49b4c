"""How each format is written again without what is private."""
