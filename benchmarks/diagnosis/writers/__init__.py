"""A record in the format of each profiler. Nothing here imports traceviz: formats are written from facts about them."""
