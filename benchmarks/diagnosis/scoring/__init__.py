"""What a report says beyond its first sentence, scored; tables of many scores; failures as files."""
