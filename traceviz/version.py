"""The version, stated once, for ``pyproject.toml``, ``traceviz --version`` and reports."""

__version__ = "0.1.0"
