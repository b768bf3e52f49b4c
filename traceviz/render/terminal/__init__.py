"""Components of a terminal page: each turns one kind of block into lines of styled text of limited width."""
