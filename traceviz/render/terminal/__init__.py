"""Pieces of a terminal page: each turns one kind of block into lines of styled text that fit a width."""
