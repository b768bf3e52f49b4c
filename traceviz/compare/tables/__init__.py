"""Tables of a study: two tags against each other, a figure over a number, and how well it scales."""
