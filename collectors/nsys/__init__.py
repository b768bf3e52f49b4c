"""The collector that runs the program under ``nsys profile``."""
