"""What several analyses need of a trace: steps, classes, joins, intervals. Nothing here is shown by itself."""
