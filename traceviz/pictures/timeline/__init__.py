"""From tables to a timeline: lanes, levels of detail, and what is kept of very large traces."""
