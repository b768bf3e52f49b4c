"""Modules that are imported on first use: slow ones that most importers of their users never need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """Placeholder for a module until one of its attributes is used, as for polars while files are still read.

    Args:
        name: Name of the module.
    """

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self.__name__), attribute)
