"""Names of Python frames: function, file without private folders, and origin of the code.

==========================  ====================================================  ==========
where the file lies         what is kept                                          origin
==========================  ====================================================  ==========
installed packages          from the package on: ``torch/optim/adam.py``          library
the standard library        below its folder: ``json/encoder.py``                 standard
below the working folder    relative to it: ``src/data.py``                       program
below the script's folder   relative to that                                      program
a package elsewhere         from the package on, as in its name                   program
a cell of a notebook        ``cell``: its file name differs after each change     program
anything else               the name alone                                        program
==========================  ====================================================  ==========

No folder of the machine or of a person is kept.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from types import CodeType, FrameType

PROGRAM, LIBRARY, STANDARD, NATIVE = "program", "library", "standard", "native"

OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + "/"  # noqa: PTH100, PTH120
"""Folder of our own hooks, which wrap functions of the program and are not part of it."""

_INSTALLED = ("/site-packages/", "/dist-packages/")
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + "/"  # noqa: PTH100, PTH120
_MADE = ("__autograph_generated_file", "<ipython-input-", "<eval_with_key>")
"""Prefixes of names that frameworks generate, different each time."""
_CELLS, _CELL = "/ipykernel_", "cell"
"""Part of the folder of a kernel's files for cells, and the name for all cells."""
_LONGEST = 200


class Places:
    """The folders from which files are named.

    Args:
        working: The working folder at the start of the process.
    """

    __slots__ = ("_roots",)

    def __init__(self, working: str) -> None:
        roots = [working, os.environ.get("PWD", "")]
        self._roots = [root.rstrip("/") + "/" for root in roots if root.rstrip("/")]

    def name(self, path: str, module: str) -> tuple[str, str] | None:
        """Return file and origin of code.

        Args:
            path: The file as the code states it.
            module: Full name of the module, if known.

        Returns:
            ``None`` for our own code.
        """
        if path.startswith(OURS):
            return None
        if _CELLS in path.rpartition("/")[0]:
            return _CELL, PROGRAM
        file, origin = self._file(path.replace("\\", "/"), module)
        for made in _MADE:
            if file.startswith(made):
                file = made + (">" if made.startswith("<") and not made.endswith(">") else "")
        return file[-_LONGEST:], origin

    def _file(self, path: str, module: str) -> tuple[str, str]:
        if path.startswith("<"):
            return path.rpartition("/")[2] if "/" in path else path, STANDARD if path.startswith("<frozen") else PROGRAM
        for folder in _INSTALLED:
            if folder in path:
                return path.rpartition(folder)[2], LIBRARY
        if path.startswith(_STANDARD):
            return path[len(_STANDARD) :], STANDARD
        if not path.startswith("/"):
            parts = [part for part in path.split("/") if part not in ("", ".", "..")]
            return "/".join(parts), PROGRAM
        for root in (*self._roots, _script_folder()):
            if root and path.startswith(root):
                return path[len(root) :], PROGRAM
        depth = module.count(".") + 1 + path.endswith("/__init__.py") if module and module != "__main__" else 1
        return "/".join(path.split("/")[-depth:]), PROGRAM


def _script_folder() -> str:
    """Return the folder of the script, which may differ from the working folder; empty without a script."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.dirname(path) + "/" if isinstance(path, str) and os.path.dirname(path) not in ("", "/") else ""  # noqa: PTH120


def function_of(code: CodeType) -> str:
    """Return the function's name, with its class if this Python knows it, without the enclosing functions.

    >>> def outer():
    ...     def inner(): pass
    ...     return inner.__code__
    >>> function_of(outer())
    'inner'
    """
    name: str = getattr(code, "co_qualname", code.co_name)
    return name.rpartition("<locals>.")[2][:_LONGEST]


def module_of(frame: FrameType) -> str:
    """Return the module of the frame's code; empty if it is unknown."""
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""
