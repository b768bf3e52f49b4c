"""Keep our own processes from importing pandas, which pyarrow uses to recognise a ``Series``.

pyarrow imports pandas once, at its first conversion of a Python value or NumPy array. That takes longer than
reading many traces. If pandas cannot be imported at that moment, pyarrow does without it, until ``to_pandas`` or
``from_pandas`` is called, which import it anyway.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def skip_pandas() -> None:
    """Let pyarrow find out that it can do without pandas, now or once it is imported.

    Nothing happens if pandas has been imported. Only for our own processes: in others, ``pyarrow.array`` must recognise
    a ``Series``.
    """
    if "pandas" in sys.modules:
        return
    if "pyarrow" in sys.modules:
        _convert_without_pandas(sys.modules["pyarrow"])
    elif not any(isinstance(finder, _WatchForPyarrow) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WatchForPyarrow())


class _WatchForPyarrow(MetaPathFinder):
    """Import hook that waits for the import of pyarrow, and then lets it convert something at once."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the specification of pyarrow, with an action after its import; nothing for other modules.

        Other finders only ask whether pyarrow exists. The hook ends when pyarrow is imported.
        """
        if name != "pyarrow":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_convert(module: ModuleType) -> None:
                sys.meta_path.remove(self)
                load(module)
                _convert_without_pandas(module)

            spec.loader.exec_module = load_and_convert  # type: ignore[method-assign]
        return spec


class _NoPandas(MetaPathFinder):
    """Import hook that finds no pandas, even if it is installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return nothing, so that other finders search for the module, unless it is pandas."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None


def _convert_without_pandas(pyarrow: ModuleType) -> None:
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pyarrow.array(())
    finally:
        sys.meta_path.remove(finder)
