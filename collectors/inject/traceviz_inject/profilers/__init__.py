"""Profilers of the frameworks and NVTX ranges, started and stopped for the recorded steps."""
