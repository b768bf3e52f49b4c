"""A report as one page of HTML that loads nothing from elsewhere."""
