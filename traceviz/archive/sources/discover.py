"""Discovery of traces in the sources that a user names: files, folders, patterns, zip and tar files, and URLs of these.

Nothing is converted here, and most files are not read. Names and first bytes show whether a file is a trace
(:mod:`traceviz.archive.sources.recognise`). A file that the user named always counts as a trace, so that an error
explains why it is not. In folders and archive files, other files are counted and ignored.

The search skips links (except a source that is a link itself), devices, hidden files and folders, archive files inside
archive files, and archives of traceviz.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from traceviz.archive.sources.exported_reports import (
    companions,
    find_exported,
    find_exported_by_name,
    refuse_exported,
    reports_by_export,
)
from traceviz.archive.sources.hashes import Item, Limits, Refused, files_in, is_regular, relevant
from traceviz.archive.sources.locations import Location, explain_errors, last_part, reach
from traceviz.archive.sources.packed import members
from traceviz.archive.sources.packed.index import below, code_of, excess, parents
from traceviz.archive.sources.recognise import (
    find_repetitions,
    head_length,
    hidden_part,
    is_other_by_name,
    is_trace,
    is_trace_by_name,
    jobs,
    may_be_trace,
    whole_folders,
)
from traceviz.archive.sources.trees import DEVICE, LINK, LocalTree, MemberTree, RemoteTree, Tree, folder_name
from traceviz.archive.storage.addresses import display_address, is_url, is_web, printable
from traceviz.archive.storage.spool import check_space
from traceviz.core.errors import DamagedTraceError, OutputError, TracevizError, UnknownFormatError, UsageError
from traceviz.parsers.run.layout import whole_run

_BLOCK = 1 << 20
_NO_TRACE = "It is no trace: neither its name nor its first bytes are those of one."


def items(sources: Sequence[str], limits: Limits) -> Iterator[Item | Refused]:
    """Yield the traces in ``sources``, and refusals with their reasons; each once, in the order of discovery.

    Archive files are listed. Compressed tar files and remote archive files must be copied for that (see
    :mod:`traceviz.archive.storage.spool`).

    Raises:
        UsageError: raised before the first item, if a path or pattern matches nothing, or a kind of URL is unknown.
        OutputError: there is no space to unpack an archive file.
    """
    expanded = [path for source in sources for path in _expand(source)]
    yield from (path for path in expanded if isinstance(path, Refused))
    paths = [path for path in expanded if not isinstance(path, Refused)]
    exports = find_exported_by_name(paths)
    reports = reports_by_export(exports)
    ranked = jobs([path for path in paths if not is_url(path) and may_be_trace(path) and path not in exports])
    seen: set[tuple[str, str, bool]] = set()
    for path in paths:
        if path in exports:
            yield refuse_exported(_name_of(path), exports[path])
            continue
        try:
            contents = _of_url(path, limits) if is_url(path) else _of_path(path, limits)
            first = next(contents, Refused(_name_of(path), "no-trace", "It is empty."))
            for item in chain([first], contents):
                if isinstance(item, Refused):
                    yield item
                elif (item.url, item.member, item.folder) not in seen:
                    seen.add((item.url, item.member, item.folder))
                    job = item.job or (Path(ranked[path]).name if path in ranked else "")
                    yield replace(item, job=job, report=item.report or reports.get(item.url, ""))
        except (UsageError, OutputError):
            raise
        except (TracevizError, OSError) as error:  # an error of the system: the file disappeared
            yield Refused(_name_of(path), "unreachable" if is_url(path) else code_of(error), str(error))


def fetch(item: Item, into: Path, limits: Limits) -> Path:
    """Return a local path of a trace: its own, or that of a copy below ``into`` if it is remote or packed.

    Args:
        item: The item to fetch.
        into: An empty folder; nothing is written anywhere else (except by :mod:`traceviz.archive.storage.spool`).
        limits: Bounds, as given to :func:`items`.

    Raises:
        DamagedTraceError: it is truncated, or its content differs from what its archive file states.
        UnknownFormatError: it no longer exists, or cannot be reached.
        OutputError: there is no space for it.
    """
    if item.kind == "member":
        return _fetch_members(item, into, limits)
    if not is_url(item.url):
        return _fetch_local(item, into)
    return _fetch_remote(item, into, limits)


def _expand(source: str) -> list[str | Refused]:
    """Return the paths and URLs that a source refers to. Links matched by a pattern are refused.

    Raises:
        UsageError: there are none.
    """
    if source.startswith(("file://", "local://")):
        source = source.partition("://")[2]
    if is_url(source):
        try:
            paths = _expand_url(source)
        except UnknownFormatError as error:  # others may still be reachable
            return [Refused(printable(last_part(source)), "unreachable", str(error))]
    elif _exists(Path(source)):
        return [str(Path(source).absolute())]
    else:
        paths = sorted(str(Path(name).absolute()) for name in glob.glob(source, recursive=True))  # noqa: PTH207 (keeps order and hidden files out)
    if not paths:
        problem = "Nothing matches" if glob.has_magic(source) else "There is no"
        raise UsageError(f"{problem} {display_address(source)}.", "Nothing was added.", "Check the path.")
    return [
        Refused(_name_of(path), "link", LINK) if not is_url(path) and Path(path).is_symlink() else path
        for path in paths
    ]


def _expand_url(source: str) -> list[str]:
    """Return the URLs that a URL or pattern refers to.

    Raises:
        UsageError: no file system of this kind is installed.
        UnknownFormatError: it cannot be reached.
    """
    filesystem, path = reach(source)
    if is_web(source) or not glob.has_magic(path):
        return [source]
    with explain_errors(display_address(source)):
        return [str(filesystem.unstrip_protocol(name)) for name in sorted(filesystem.glob(path))]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # no permission, or the path is too long
        raise UsageError(
            f"{printable(str(path))} cannot be reached.", f"{error.strerror}.", "Check the path."
        ) from None


def _name_of(path: str) -> str:
    """Return the last part of a path or URL, for display."""
    return printable(last_part(path) if is_url(path) else Path(path).name)


def _of_path(source: str, limits: Limits) -> Iterator[Item | Refused]:
    named = whole_run(Path(source))
    path = named.resolve()
    name = (path if named.name in {"", ".."} else named).name or "root"
    if path.is_dir():
        yield from _in(LocalTree.at(path, name), limits)
    elif not path.is_file():
        yield Refused(printable(name), "device", DEVICE)
    else:
        yield from _discover_file(Location(str(path), printable(name)), path.stat().st_size, limits)


def _of_url(url: str, limits: Limits) -> Iterator[Item | Refused]:
    filesystem, path = reach(url)
    name = last_part(url.rstrip("/")) or "source"
    if not is_web(url):
        with explain_errors(name):
            filesystem.invalidate_cache()
            is_folder = bool(filesystem.isdir(path))
        if is_folder:
            yield from _in(RemoteTree.at(url.rstrip("/"), name), limits)
            return
    location = Location(url, printable(name))
    yield from _discover_file(location, location.size, limits)


def _discover_file(location: Location, size: int | None, limits: Limits) -> Iterator[Item | Refused]:
    """Yield the items of a file that is a source itself: of an archive file, or the file as a trace."""
    head = location.head(members.HEAD_BYTES)
    if members.kind_of(head):
        yield from _in(MemberTree.at(location, limits), limits)
    elif unread := members.unread_kind(head):
        yield Refused(location.name, "unreadable", _explain_other_packer(unread))
    else:
        yield Item(location.url, location.name, size=size)


def _in(tree: Tree, limits: Limits) -> Iterator[Item | Refused]:
    """Yield the items in a tree."""
    yield from tree.refused
    visible = sorted(name for name in tree.sizes if not hidden_part(name))
    whole, archives = whole_folders(visible, tree.head, tree.where)
    taken = {*whole, *archives}
    for folder in archives:
        why = "It is an archive of traceviz. What it holds is taken out with: traceviz archive export."
        yield Refused(tree.called(folder), "archive", why)
    alone = [name for name in visible if "" not in taken and taken.isdisjoint(parents(name))] if taken else visible
    exports = find_exported([name for name in alone if (tree.sizes[name] or 0) <= limits.bytes], tree.heads)
    yield from (refuse_exported(tree.called(report), export) for report, export in exports.items())
    alone = [name for name in alone if name not in exports]
    reports = reports_by_export(exports)
    ranked = jobs([*whole, *filter(may_be_trace, alone)])
    names = sorted(tree.sizes)
    for folder in whole:
        yield _as_folder(tree, folder, _in_folder(names, folder), _job(tree, ranked.get(folder)), limits)
    for name in sorted(tree.sizes.keys() - set(visible)):
        if "" not in taken and taken.isdisjoint(parents(name)):
            yield Refused(tree.called(name), "no-trace", "It is hidden.")
    yield from _files(tree, alone, ranked, reports, limits)


def _as_folder(tree: Tree, folder: str, names: Sequence[str], job: str, limits: Limits) -> Item | Refused:
    size = sum(tree.sizes[name] or 0 for name in names)
    if size > limits.bytes:
        return Refused(tree.called(folder), "too-large", f"It has {size:,} bytes; the limit is {limits.bytes:,}.")
    code, why = excess(tree.packed_size(names), size, limits)  # all members together; each alone may be allowed
    if code:
        return Refused(tree.called(folder), code, why)
    return tree.item(folder, folder=True, size=size, job=job)


def _files(
    tree: Tree, names: Sequence[str], ranked: Mapping[str, str], reports: Mapping[str, str], limits: Limits
) -> Iterator[Item | Refused]:
    """Yield the traces among single files."""
    beside = find_repetitions(names, tree.where)
    unclear: list[str] = []
    for name in names:
        size = tree.sizes[name]
        if name in beside:
            yield Refused(tree.called(name), "no-trace", "It says again what the capture beside it says.")
        elif size is not None and size > limits.bytes:
            yield Refused(tree.called(name), "too-large", f"It has {size:,} bytes; the limit is {limits.bytes:,}.")
        elif is_trace_by_name(name):
            item = tree.item(name, folder=False, size=size, job=_job(tree, ranked.get(name)))
            yield replace(item, report=printable(reports.get(name, "")))
        elif is_other_by_name(name) or size == 0:
            yield Refused(tree.called(name), "no-trace", _NO_TRACE if size else "It is empty.")
        else:
            unclear.append(name)
    heads = tree.heads((name, head_length(name)) for name in unclear)
    for name, head in heads:
        yield from _by_head(tree, name, head, _job(tree, ranked.get(name)), limits)


def _by_head(tree: Tree, name: str, head: bytes | None, job: str, limits: Limits) -> Iterator[Item | Refused]:
    """Yield the items of a file, based on its first bytes."""
    if head is None:
        yield Refused(tree.called(name), "unreadable", "It cannot be read.")
        return
    if is_trace(name, head):
        yield tree.item(name, folder=False, size=tree.sizes[name], job=job)
        return
    if members.may_be_packed(head):
        head = tree.head(name, members.HEAD_BYTES)
    unread = members.unread_kind(head)
    if members.kind_of(head):
        location = tree.location(name)
        if location is None:
            why = "It is an archive file inside an archive file. Unpack it, and add it by itself."
            yield Refused(tree.called(name), "nested", why)
            return
        try:
            yield from _in(MemberTree.at(location, limits), limits)
        except OutputError:
            raise
        except TracevizError as error:
            yield Refused(tree.called(name), code_of(error), str(error))
    elif unread:
        yield Refused(tree.called(name), "unreadable", _explain_other_packer(unread))
    else:
        yield Refused(tree.called(name), "no-trace", _NO_TRACE)


def _explain_other_packer(kind: str) -> str:
    return f"It is packed with {kind}, which is not read. Unpack it, or pack it as .zip, .tar, .tar.gz or .tar.zst."


def _job(tree: Tree, folder: str | None) -> str:
    return "" if folder is None else tree.called(folder)


def _in_folder(names: Sequence[str], folder: str) -> list[str]:
    """Return the files of a folder that is one trace, from the sorted names of a tree."""
    prefix = f"{folder}/" if folder else ""
    return [prefix + name for name in relevant([name[len(prefix) :] for name in below(names, folder)])]


def _fetch_local(item: Item, into: Path) -> Path:
    path = Path(item.url)
    if item.kind == "file":
        if not is_regular(path):
            raise UnknownFormatError(f"{item.name} is not there any more.", fix="Add it again.")
        return path
    with explain_errors(item.name):
        if not path.is_dir():
            raise UnknownFormatError(f"{item.name} is not there any more.", fix="Add it again.")
        names = files_in(path)
        if not any(entry.is_symlink() or not (entry.is_file() or entry.is_dir()) for entry in path.rglob("*")):
            return path
    target = into / path.name
    for name in names:  # readers would follow the links in it
        _copy(Location(str(path / name), f"{item.name}/{name}"), target / name, Limits())
    return target


def _fetch_remote(item: Item, into: Path, limits: Limits) -> Path:
    target = into / (folder_name(item) if item.folder else last_part(item.url) or "trace")
    if item.folder:
        tree = RemoteTree.at(item.url, item.name)
        check_space(into, item.size or 0)  # for all files, before the first is written
        for name in relevant(list(tree.sizes)):
            _copy(tree.location(name), target / name, limits)
        return target
    _copy(Location(item.url, item.name), target, limits)
    for url in () if is_web(item.url) else companions(item.url):
        filesystem, beside = reach(url)
        with explain_errors(item.name):
            is_there = bool(filesystem.isfile(beside))
        if is_there and (Location(url, item.name).size or 0) <= limits.bytes:
            _copy(Location(url, item.name), into / last_part(url), limits)
    return target


def _fetch_members(item: Item, into: Path, limits: Limits) -> Path:
    location = Location(item.url, item.name)
    index = members.index_of(location, limits)
    entries = index.entries
    target = into / folder_name(item)
    if item.folder:
        prefix = f"{item.member}/" if item.member else ""
        unpacked = {name[len(prefix) :]: entries[name] for name in _in_folder(index.names, item.member)}
    else:
        unpacked = {target.name: entries[item.member]} if item.member in entries else {}
        beside = (name for name in companions(item.member) if unpacked and name in entries)
        unpacked |= {name.rpartition("/")[2]: entries[name] for name in beside}
    if not unpacked:
        raise UnknownFormatError(f"{item.name} is not there any more.", "The archive file changed.", "Add it again.")
    with members.open_plain(location, limits) as file:
        members.unpack(file, unpacked, target if item.folder else into)
    return target


def _copy(location: Location, target: Path, limits: Limits) -> None:
    """Copy a file to a new one."""
    size = location.size or 0
    if size > limits.bytes:
        raise DamagedTraceError(f"{location.name} is too large.", f"The limit is {limits.bytes:,} bytes.")
    check_space(next(parent for parent in target.parents if parent.exists()), size)
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with target.open("xb") as file:
        for block in location.blocks(_BLOCK):
            written += len(block)
            if written > limits.bytes:
                raise DamagedTraceError(f"{location.name} is too large.", f"The limit is {limits.bytes:,} bytes.")
            try:
                file.write(block)
            except OSError as error:
                raise OutputError(f"{target.parent} cannot be written.", f"{error.strerror}.", "Set TMPDIR.") from error
