"""Modules that are imported when they are first used: slow ones, which much of what imports their users never needs."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """Stands for a module until something of it is asked for, as for polars while files are still read.

    Args:
        name: The module.
    """

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self.__name__), attribute)
