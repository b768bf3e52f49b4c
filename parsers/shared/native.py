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

SCANNER_VARIABLE = "TRACEVIZ_SCANNER"
"""Environment variable: ``protobuf`` reads XPlane files without any compiled function."""


def native() -> ModuleType | None:
    """The compiled functions; ``None`` where there are none or the environment asks to do without."""
    return None if os.environ.get(SCANNER_VARIABLE) == "protobuf" else library
