"""The version, stated once: ``pyproject.toml``, ``traceviz --version`` and reports take it from here."""

__version__ = "0.1.0"
