"""Facts that several analyses need: steps, classes, joins and intervals. Nothing here is reported directly."""
