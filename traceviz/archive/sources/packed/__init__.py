"""Archive files as sources: zip and tar."""
