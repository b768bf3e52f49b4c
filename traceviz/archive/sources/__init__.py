"""Where traces come from: files, folders, URLs, and what is packed in them."""
