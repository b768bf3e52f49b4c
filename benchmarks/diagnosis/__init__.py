"""A simulator of programs whose true cause is known, and a score of reports on captures of them."""
