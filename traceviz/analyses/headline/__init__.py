"""The first line of the report. It names the main use of the time, chosen by the rule of ``docs/causes.md``."""
