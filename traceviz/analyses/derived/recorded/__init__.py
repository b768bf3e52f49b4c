"""Facts from the tables as recorded: clocks, edges, losses, graph captures, and times when devices can be judged."""
