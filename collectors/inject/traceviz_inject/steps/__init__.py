"""Steps of the training loop, found per framework."""
