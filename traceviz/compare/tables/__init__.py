"""Tables of a study: cross tables of two tags, curves over a number, and scaling."""
