"""What the tables hold as they were recorded: clocks, edges, losses, graph capture, devices that can be judged."""
