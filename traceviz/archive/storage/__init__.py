"""Where an archive lies, and how it is written without locks."""
