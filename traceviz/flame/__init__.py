"""From tables to flame graphs, by class of step time, and the difference of two."""
