"""Registries: named items of traceviz, of installed plugins, and of the running program.

A plugin is an installed package with entry points, such as::

    [project.entry-points."traceviz.readers"]
    acme = "acme_traceviz.reader:AcmeReader"

The name of an entry point is the name of its item. So the metadata of packages is enough to list the names, and an
entry point is imported only when its item is needed. A plugin that fails is reported by a warning and left out, unless
the caller asks for it by name (see ``docs/plugins.md``).
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from traceviz.core.errors import PluginError, TracevizWarning, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Item = TypeVar("Item")

_GROUPS = "traceviz."
"""Start of the names of all groups of entry points."""


class Registry(Generic[Item]):
    """Items of one kind by name: those of traceviz first, then those of plugins, then those of :meth:`register`.

    >>> READERS = Registry("reader", "traceviz.readers", {}, instance_of(Reader), attrgetter("format"))
    >>> READERS.find("acme")

    Args:
        kind: Name of the kind in messages: ``reader``.
        group: Group of its entry points.
        own: Items of traceviz by name, or their homes: ``module:attribute``.
        accept: Makes an item of an object that was imported or registered; raises TypeError or ValueError.
        name_of: Returns the name of an item.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        own: Mapping[str, Item | str],
        accept: Callable[[object], Item],
        name_of: Callable[[Item], str],
    ) -> None:
        self.kind, self.group = kind, group
        self._own, self._accept, self._name_of = own, accept, name_of
        self._loaded: dict[str, Item] = {}
        self._registered: dict[str, Item] = {}
        self._added: tuple[Item, ...] | None = None

    def __iter__(self) -> Iterator[Item]:
        return iter(self.all())

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self.names()

    def names(self) -> tuple[str, ...]:
        """Return all names. Nothing is imported."""
        return tuple(dict.fromkeys((*self._own, *_entry_points(self.group), *self._registered)))

    def all(self) -> tuple[Item, ...]:
        """Return all items. A plugin that cannot be loaded is reported by a warning and left out."""
        return (*map(self._load_own, self._own), *self.added())

    def added(self) -> tuple[Item, ...]:
        """Return the items that are not of traceviz, as :meth:`all` does, and import no other."""
        if self._added is None:
            items = {}
            for name in _entry_points(self.group):
                try:
                    items[name] = self._load_plugin(name)
                except PluginError as error:
                    warn_of_plugin(error)
            self._added = tuple({**items, **self._registered}.values())
        return self._added

    def find(self, name: str) -> Item:
        """Return the item of this name, and import no other.

        Raises:
            UsageError: there is none; the error lists the known names.
            PluginError: it belongs to a plugin that cannot be loaded.
        """
        if name in self._registered:
            return self._registered[name]
        if name in self._own:
            return self._load_own(name)
        if name in _entry_points(self.group):
            return self._load_plugin(name)
        raise UsageError.unknown(self.kind, name, self.names())

    def register(self, item: object) -> Item:
        """Add an item to the running program; it replaces an item that was registered under the same name.

        Raises:
            TypeError, ValueError: it is not an item of this kind, or its name belongs to traceviz.
        """
        accepted = self._accept(item)
        name = self._name_of(accepted)
        if name in self._own:
            raise ValueError(f"The {self.kind} {name!r} belongs to traceviz.")
        self._registered[name], self._added = accepted, None
        return accepted

    def unregister(self, name: str) -> None:
        """Remove an item that was registered; do nothing if there is none."""
        self._registered.pop(name, None)
        self._added = None

    def _load_own(self, name: str) -> Item:
        item = self._own[name]
        if not isinstance(item, str):
            return item
        if name not in self._loaded:
            self._loaded[name] = self._accept(load_home(item))
        return self._loaded[name]

    def _load_plugin(self, name: str) -> Item:
        if name in self._loaded:
            return self._loaded[name]
        point = _entry_points(self.group)[name]
        try:
            if name in self._own:
                raise ValueError(f"traceviz has a {self.kind} of this name")  # noqa: TRY301 (one way to report it)
            item = self._accept(point.load())
            if self._name_of(item) != name:
                raise ValueError(f"{point.value} names itself {self._name_of(item)!r}")  # noqa: TRY301
        except (Exception, SystemExit) as error:
            raise plugin_error(point, f"{self.kind} {name!r} cannot be loaded", error) from error
        self._loaded[name] = item
        return item


def instance_of(kind: type) -> Callable[[object], Any]:
    """Return a function that accepts instances and subclasses of ``kind``; it creates an instance of a subclass."""

    def accept(value: object) -> Any:
        made = value() if isinstance(value, type) and issubclass(value, kind) else value
        if not isinstance(made, kind):
            raise TypeError(f"{value!r} is no {kind.__module__}.{kind.__qualname__}")
        return made

    return accept


def load_home(home: str) -> object:
    """Return the object at ``home``, which is written ``module:attribute``."""
    module, _, attribute = home.partition(":")
    found: object = getattr(import_module(module), attribute)
    return found


def is_own(module: str) -> bool:
    """Return whether a module, or a home in it, is part of traceviz."""
    return module.startswith("traceviz.")


def warn_of_plugin(error: PluginError) -> None:
    """Warn that a plugin failed and is left out."""
    warnings.warn(f"{error} It is left out.", TracevizWarning, stacklevel=3)


def plugin_error(point: EntryPoint | None, what: str, error: BaseException) -> PluginError:
    """Return the error for a failure of a plugin.

    Args:
        point: An entry point of the plugin; ``None`` for an item that was registered.
        what: The failure: ``reader 'acme' cannot be loaded``.
        error: The exception that shows it.
    """
    message = f"{type(error).__name__}: {error}".rstrip(": .")
    if point is None or point.dist is None:
        return PluginError(f"A plugin failed: {what}.", f"{message}.", "Fix it, or uninstall its package.")
    name = point.dist.name
    return PluginError(
        f"The plugin {name} {point.dist.version} failed: {what}.",
        f"{message}.",
        f"Update it, or uninstall it: python -m pip uninstall {name}.",
    )


def find_fault_of_plugin(error: BaseException) -> PluginError | None:
    """Return an error that names the plugin in whose code ``error`` was raised; ``None`` if there is none.

    Only packages of plugins that were imported are searched for.
    """
    frames = [(str(frame.f_globals.get("__name__")), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    for module, line in reversed(frames):
        package = module.partition(".")[0]
        for point in _all_entry_points():
            if package == point.value.partition(":")[0].partition(".")[0] and not is_own(f"{package}."):
                return plugin_error(point, f"an error in {module}, line {line}", error)
    return None


@cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of ``group`` by name. If several share a name, the first package in order counts."""
    named: dict[str, EntryPoint] = {}
    for point in _all_entry_points():
        if point.group == group and named.setdefault(point.name, point) is not point:
            other = named[point.name].dist
            taken = ValueError(f"{other.name if other else 'another plugin'} has one of this name")
            warn_of_plugin(plugin_error(point, f"{group} {point.name!r} cannot be used", taken))
    return named


@cache
def _all_entry_points() -> tuple[EntryPoint, ...]:
    """Return the entry points of all installed plugins, in order of packages and names."""
    folders = _plugin_folders()
    if not folders:
        return ()
    from importlib.metadata import PathDistribution  # noqa: PLC0415 (takes 50 ms to import)

    packages: dict[str, PathDistribution] = {}
    for folder in folders:
        package = PathDistribution(Path(folder))
        packages.setdefault(package.name, package)  # as Python imports modules: the first on the path
    points = [point for _, package in sorted(packages.items()) for point in package.entry_points]
    return tuple(point for point in points if point.group.startswith(_GROUPS))


def _plugin_folders() -> list[str]:
    """Return the folders with metadata of installed packages that have entry points of traceviz.

    Importing importlib.metadata and asking it for all entry points takes 60 to 90 ms with 180 packages. Reading these
    files takes 3 ms.
    """
    found = []
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                packages = sorted(entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue
        for package in packages:
            try:
                with open(f"{package}/entry_points.txt", "rb") as file:  # noqa: PTH123 (a Path each takes longer)
                    if b"[traceviz." in file.read():
                        found.append(package)
            except OSError:
                continue
    return found
