"""The first line of the report. It names what takes the time, chosen by the rule of ``docs/causes.md``."""
