"""A report as one HTML page that loads nothing from elsewhere."""
