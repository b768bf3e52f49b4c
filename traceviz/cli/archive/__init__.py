"""``traceviz archive`` and its commands."""
