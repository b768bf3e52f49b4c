"""Host activity while no device worked: the recorded event that explains each nanosecond."""
