"""Compiled functions over arrays, or their NumPy versions if the package was built without a C compiler.

``TRACEVIZ_SWEEPS=numpy`` in the environment selects the NumPy versions.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from types import ModuleType

from traceviz.core.arrays import portable

library: ModuleType = portable
"""Functions with the signatures of ``_compiled.pyi``. They write their results to the last buffers."""

if os.environ.get("TRACEVIZ_SWEEPS") != "numpy":
    with suppress(ImportError):
        library = import_module("traceviz.core.arrays._compiled")
