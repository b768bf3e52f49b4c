"""Sparing our own processes the import of pandas, which pyarrow uses to recognise a ``Series`` when it sees one.

pyarrow imports pandas once, at its first conversion of a Python value or NumPy array, and that takes longer than
reading many a trace. Where pandas cannot be imported at that moment, pyarrow goes without it, until ``to_pandas`` or
``from_pandas`` is called, which import it all the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas(MetaPathFinder):
    """Finds no pandas, wherever it is installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Nothing, so that others look for the module, unless it is pandas."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None


def skip_pandas() -> None:
    """Let pyarrow find out that it can do without pandas; nothing happens where pandas has been imported.

    For processes that are ours alone: in those of others, ``pyarrow.array`` must recognise a ``Series``.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415 (a command that reads no trace does without it)

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array(())
    finally:
        sys.meta_path.remove(finder)
