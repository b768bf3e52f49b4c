"""File trees: a folder, a URL, or the members of an archive file, behind one interface."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path, PurePosixPath

from traceviz.archive.sources.hashes import Item, Limits, Refused
from traceviz.archive.sources.locations import Location, explain_errors, last_part, reach
from traceviz.archive.sources.names import normal, unsafe
from traceviz.archive.sources.packed import members
from traceviz.archive.sources.packed.index import Index
from traceviz.archive.sources.recognise import hidden_part
from traceviz.archive.storage.addresses import is_url, printable

_AT_ONCE = 64
"""Files of an object store that are requested concurrently, as each takes a while to answer."""
LINK = "It is a link: what it leads to is not followed. Name that itself."
DEVICE = "It is no file: a device, a named pipe or a socket. It is not opened."


class Tree(ABC):
    """Files below one name.

    Args:
        name: Its display name.
        where: Its path, as names of folders may show the kind of a trace.
        sizes: Its files by relative path, with their size in bytes if known. All names are safe.
        refused: Refused parts of its content.
    """

    name: str
    where: str
    sizes: Mapping[str, int | None]
    refused: tuple[Refused, ...]

    @abstractmethod
    def heads(self, lengths: Iterable[tuple[str, int]]) -> Iterator[tuple[str, bytes | None]]:
        """Yield the first bytes of files, each with the given length; ``None`` for a file that cannot be read."""

    @abstractmethod
    def item(self, name: str, *, folder: bool, size: int | None, job: str) -> Item:
        """Return the item for a file, or for a folder with its content."""

    def location(self, name: str) -> Location | None:  # noqa: ARG002 (not here)
        """Return the location of a possible archive file; ``None`` if archive files are not searched here."""
        return None

    def packed_size(self, names: Sequence[str]) -> int:
        """Return the packed size of files in bytes."""
        return sum(self.sizes[name] or 0 for name in names)

    def head(self, name: str, count: int) -> bytes:
        """Return the first bytes of one file."""
        return next(head for _, head in self.heads([(name, count)])) or b""

    def called(self, name: str) -> str:
        """Return the display name of one of its files."""
        return printable(f"{self.name}/{name}" if name else self.name)


@dataclass(frozen=True, slots=True)
class LocalTree(Tree):
    """A local folder."""

    root: Path
    name: str
    where: str
    sizes: Mapping[str, int | None]
    refused: tuple[Refused, ...]

    @classmethod
    def at(cls, root: Path, name: str) -> LocalTree:
        """Read the content of a folder. Links are not followed, so that the search terminates and stays inside."""
        sizes: dict[str, int | None] = {}
        refused: list[Refused] = []
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(root / folder) as entries:
                    listed = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                shown = printable(f"{name}/{folder}".rstrip("/"))
                refused.append(Refused(shown, "unreadable", f"It cannot be read: {error.strerror}."))
                continue
            for entry in listed:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_symlink():
                    refused.append(Refused(printable(f"{name}/{path}"), "link", LINK))
                elif entry.is_dir(follow_symlinks=False):
                    if hidden_part(entry.name):
                        refused.append(Refused(printable(f"{name}/{path}/"), "no-trace", "It is hidden."))
                    else:
                        pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    sizes[path] = _size(entry)
                else:
                    refused.append(Refused(printable(f"{name}/{path}"), "device", DEVICE))
        return cls(root, name, str(root), sizes, tuple(refused))

    def heads(self, lengths: Iterable[tuple[str, int]]) -> Iterator[tuple[str, bytes | None]]:
        """See :meth:`Tree.heads`."""
        for name, count in lengths:
            try:
                with (self.root / name).open("rb") as file:
                    head = file.read(count)
            except OSError:
                yield name, None
            else:
                yield name, head

    def item(self, name: str, *, folder: bool, size: int | None, job: str) -> Item:
        """See :meth:`Tree.item`."""
        path = self.root / name
        return Item(str(path), self.called(name), "folder" if folder else "file", size=size, folder=folder, job=job)

    def location(self, name: str) -> Location:
        """See :meth:`Tree.location`."""
        return Location(str(self.root / name), self.called(name))


@dataclass(frozen=True, slots=True)
class RemoteTree(Tree):
    """Files below a URL of an object store."""

    url: str
    name: str
    where: str
    sizes: Mapping[str, int | None]
    refused: tuple[Refused, ...]
    keys: Mapping[str, str]

    @classmethod
    def at(cls, url: str, name: str) -> RemoteTree:
        """List the files below a URL.

        Raises:
            UnknownFormatError: it cannot be listed.
        """
        filesystem, root = reach(url)
        with explain_errors(name):
            filesystem.invalidate_cache()
            listed = filesystem.find(root, detail=True)
        sizes: dict[str, int | None] = {}
        keys: dict[str, str] = {}
        refused: list[Refused] = []
        for key, info in sorted(listed.items()):
            path = key[len(root) :].removeprefix("/") if key.startswith(root) else key
            why = unsafe(path) or ("" if normal(path) == path else "Its name holds empty parts, or a dot as one.")
            if info.get("type") != "file" or not path or path.endswith("/"):
                continue  # an object that represents a folder
            if why:
                refused.append(Refused(printable(f"{name}/{path}"), "unsafe-name", why))
            elif info.get("islink"):
                refused.append(Refused(printable(f"{name}/{path}"), "link", LINK))
            else:
                sizes[path], keys[path] = info.get("size"), key
        return cls(url.rstrip("/"), name, root, sizes, tuple(refused), keys)

    def heads(self, lengths: Iterable[tuple[str, int]]) -> Iterator[tuple[str, bytes | None]]:
        """See :meth:`Tree.heads`. Several files are requested concurrently."""
        filesystem, _ = reach(self.url)
        left = iter(lengths)
        while part := list(islice(left, _AT_ONCE)):
            # A store refuses a range beyond the end, and thus any range of an empty file.
            ends = [min(count, count if (size := self.sizes[name]) is None else size) for name, count in part]
            paths = [self.keys[name] for (name, _), end in zip(part, ends, strict=True) if end]
            with explain_errors(self.name):
                answers = filesystem.cat_ranges(
                    paths, [0] * len(paths), [end for end in ends if end], on_error="return"
                )
            heads = iter(answers)
            for (name, _), end in zip(part, ends, strict=True):
                head = next(heads) if end else b""
                yield name, head if isinstance(head, bytes) else None

    def item(self, name: str, *, folder: bool, size: int | None, job: str) -> Item:
        """See :meth:`Tree.item`."""
        url = f"{self.url}/{name}" if name else self.url
        return Item(url, self.called(name), "folder" if folder else "file", size=size, folder=folder, job=job)

    def location(self, name: str) -> Location:
        """See :meth:`Tree.location`."""
        return Location(f"{self.url}/{name}", self.called(name))


@dataclass(frozen=True, slots=True)
class MemberTree(Tree):
    """Members of an archive file."""

    packed: Location
    limits: Limits
    index: Index
    name: str
    where: str
    sizes: Mapping[str, int | None]
    refused: tuple[Refused, ...] = field(default=())

    @classmethod
    def at(cls, packed: Location, limits: Limits) -> MemberTree:
        """Return the tree of an archive file's members.

        Raises:
            TracevizError: see :func:`traceviz.archive.sources.packed.members.index_of`.
        """
        index = members.index_of(packed, limits)
        refused = tuple(
            Refused(f"{packed.name}/{refusal.name}" if refusal.name else packed.name, refusal.code, refusal.why)
            for refusal in index.refused
        )
        sizes = {name: entry.size for name, entry in index.entries.items()}
        return cls(packed, limits, index, packed.name, "", sizes, refused)

    def heads(self, lengths: Iterable[tuple[str, int]]) -> Iterator[tuple[str, bytes | None]]:
        """See :meth:`Tree.heads`."""
        left = iter(lengths)
        first = next(left, None)
        if first is None:  # avoids opening or fetching the archive file
            return
        with members.open_for_listing(self.packed, self.limits) as (file, _):
            for name, count in chain([first], left):
                yield name, members.head_of(file, self.index.entries[name], count)

    def item(self, name: str, *, folder: bool, size: int | None, job: str) -> Item:
        """See :meth:`Tree.item`."""
        return Item(self.packed.url, self.called(name), "member", name, size, folder, job)

    def packed_size(self, names: Sequence[str]) -> int:
        """See :meth:`Tree.packed_size`."""
        return sum(self.index.entries[name].packed for name in names)


def _size(entry: os.DirEntry[str]) -> int | None:
    """Return the size of a file in bytes; ``None`` if it no longer exists."""
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return None


def folder_name(item: Item) -> str:
    """Return the file or folder name that an item is fetched into: the last part of its path inside the source."""
    last = PurePosixPath(item.member or (last_part(item.url) if is_url(item.url) else item.url)).name
    if item.kind == "member" and not item.member:
        last = last.split(".")[0]
    return last if last and not unsafe(last) else "trace"
