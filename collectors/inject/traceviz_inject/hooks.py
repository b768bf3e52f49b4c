"""Run a function once a module has been imported by the program, by whichever way that happens.

The finder stands first and knows the few modules that are waited for. It finds them through all the other finders, as
the interpreter would have done, and puts itself between the interpreter and the module's loader for one call: the
module ends up with its own loader and its own spec, and nothing of ours in it.
"""

from __future__ import annotations

import sys

from .status import guarded

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Hook = Callable[[ModuleType], None]

_waiting: dict[str, list[Hook]] = {}
_packages: set[str] = set()
_first: list[Callable[[], None]] = []


def before_import(packages: Sequence[str], prepare: Callable[[], None]) -> None:
    """Call ``prepare()`` once, before the first of ``packages`` is executed; now if one of them was."""
    _packages.update(packages)
    _first.append(guarded(prepare))
    if any(package in sys.modules for package in packages):
        _prepare()
    _stand_first()


def _prepare() -> None:
    _packages.clear()
    while _first:
        _first.pop()()


def _stand_first() -> None:
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def when_imported(module: str, hook: Hook) -> None:
    """Call ``hook(module)`` each time that ``module`` has been executed: now if it was, at its import, at a reload.

    Args:
        module: Full name of a module.
        hook: Called with the module; a failure of it is reported and does not reach the program. What it patches it
            must mark (see :func:`replace`), because a reload calls it again.
    """
    _stand_first()
    hooks = _waiting.setdefault(module, [])
    hooks.append(hook)
    present = sys.modules.get(module)
    if present is not None and not getattr(getattr(present, "__spec__", None), "_initializing", False):
        guarded(hook)(present)


def replace(owner: Any, attribute: str, make: Callable[[Any], Any], mark: str = "__traceviz__") -> None:
    """Put ``make(original)`` in the place of ``owner.attribute``, once: what was made is marked and not wrapped again.

    Nothing happens where the attribute is absent: versions of a framework differ.
    """
    original = owner.__dict__.get(attribute) if isinstance(owner, type) else getattr(owner, attribute, None)
    if original is None or getattr(original, mark, False):
        return
    made = make(original)
    setattr(made, mark, True)
    setattr(owner, attribute, made)


class _Finder:
    """Finds the modules that are waited for, through the other finders."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of ``name`` with a loader that runs the hooks afterwards; ``None`` for everything else."""
        if name in _packages:
            _prepare()
        if name not in _waiting:
            return None
        spec = _find_by_others(name, path, target)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return spec
        spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def _find_by_others(name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        if finder is _FINDER or not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(name, path, target)
        if spec is not None:
            return spec
    return None


class _Loader:
    """A loader that steps aside while the module is executed, and runs the hooks afterwards."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, attribute: str) -> Any:
        """Everything that a loader may offer beside the two below: get_code, get_data, is_package, ..."""
        return getattr(self._loader, attribute)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        make = getattr(self._loader, "create_module", None)
        module: ModuleType | None = make(spec) if make else None
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module with its own loader, then run the hooks."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for hook in tuple(_waiting.get(module.__name__, ())):
            guarded(hook)(module)


_FINDER = _Finder()
