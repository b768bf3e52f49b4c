"""Access to the compiled functions, which exist if the package was built with a C compiler."""

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
"""Values of it that disable compiled code for reading databases."""


def native() -> ModuleType | None:
    """Return the compiled functions; ``None`` if there are none or the environment disables them."""
    return None if os.environ.get(SCANNER_VARIABLE) == "protobuf" else library


def decoder() -> ModuleType | None:
    """Return the compiled decoder of SQLite pages; ``None`` if there is none or the environment disables it."""
    return None if os.environ.get(SCANNER_VARIABLE) in _WITHOUT_DECODER else _decoder
