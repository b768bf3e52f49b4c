"""Steps: their duration, and the classes of their time."""
