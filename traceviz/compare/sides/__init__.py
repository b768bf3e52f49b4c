"""The sides of a comparison: from files, runs and tags to steps that line up."""
