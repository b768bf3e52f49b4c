"""The first line of the report: what takes the time, chosen by the rule of ``docs/causes.md``."""
