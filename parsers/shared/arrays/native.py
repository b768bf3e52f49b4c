"""The compiled functions, which are there where the package was built with a C compiler."""

from __future__ import annotations

import os
from types import ModuleType

try:
    from traceviz.parsers import _xplane
except ImportError:
    library: ModuleType | None = None
else:
    library = _xplane

try:
    from traceviz.parsers import _sqlite
except ImportError:
    _decoder: ModuleType | None = None
else:
    _decoder = _sqlite

SCANNER_VARIABLE = "TRACEVIZ_SCANNER"
"""Environment variable: ``protobuf`` reads XPlane files without any compiled function, ``numpy`` SQLite databases."""
_WITHOUT_DECODER = frozenset({"numpy", "msgspec", "protobuf"})
"""Values of it that ask for reading databases without anything compiled."""


def native() -> ModuleType | None:
    """The compiled functions; ``None`` where there are none or the environment asks to do without."""
    return None if os.environ.get(SCANNER_VARIABLE) == "protobuf" else library


def decoder() -> ModuleType | None:
    """The compiled decoder of SQLite pages; ``None`` where there is none or the environment asks to do without."""
    return None if os.environ.get(SCANNER_VARIABLE) in _WITHOUT_DECODER else _decoder
