"""Work of devices and hosts in Chrome-format traces, as rows of the tables."""
