"""Pictures of a page as values, independent of their source and of the drawing."""
