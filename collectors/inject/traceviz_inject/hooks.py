"""Run a function once the program has imported a module, in any way.

The finder stands first and knows the few modules that are waited for. It finds them through all other finders, as the
interpreter would have done. It replaces the module's loader for one call only: in the end, the module has its own
loader and its own spec, and nothing of ours.
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
        hook: Called with the module; a failure is reported and does not reach the program. It must mark patched
            functions (see :func:`replace`), because a reload calls it again.
    """
    _stand_first()
    hooks = _waiting.setdefault(module, [])
    hooks.append(hook)
    present = sys.modules.get(module)
    if present is not None and not getattr(getattr(present, "__spec__", None), "_initializing", False):
        guarded(hook)(present)


def replace(owner: Any, attribute: str, make: Callable[[Any], Any], mark: str = "__traceviz__") -> None:
    """Replace ``owner.attribute`` by ``make(original)`` once: the result is marked and not wrapped again.

    If the attribute is absent, do nothing: versions of a framework differ.
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
        """Return the spec of ``name`` with a loader that runs the hooks afterwards; ``None`` for other modules."""
        if name in _packages:
            _prepare()
        if name not in _waiting:
            return None
        for finder in list(sys.meta_path):
            if finder is _FINDER or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """A loader that restores the original loader while the module is executed, and runs the hooks afterwards."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, attribute: str) -> Any:
        """Return other attributes of a loader, such as get_code, get_data, is_package."""
        return getattr(self._loader, attribute)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as its own loader does."""
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
