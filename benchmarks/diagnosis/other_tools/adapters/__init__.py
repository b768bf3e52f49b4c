"""Programs that ask one other tool for its diagnosis of a capture; each runs in the environment of its tool."""
