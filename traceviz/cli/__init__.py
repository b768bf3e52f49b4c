"""The command line: each command reads its options, calls the API, and prints."""
