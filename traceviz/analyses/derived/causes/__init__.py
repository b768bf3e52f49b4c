"""What the host did in the time in which no device worked: the recorded event that explains each nanosecond."""
