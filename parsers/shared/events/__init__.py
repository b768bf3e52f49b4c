"""Conversion of raw tables of events to the tables of the schema."""
