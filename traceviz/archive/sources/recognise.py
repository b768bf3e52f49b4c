"""Recognition of traces among many files, by names and first bytes, at any location and in any packing.

A folder is one trace if its files are parts of one trace. Such folders are a run of ``traceviz collect``, a folder of
``traceviz convert``, samples of resources, a ``parquetdir`` export of nsys, and the hosts of one run of TensorFlow's
profiler. Other folders are searched, and every trace in them counts separately. This includes the runs in a log folder
of TensorBoard, although readers would choose the newest.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from traceviz.archive.sources.packed.index import parents
from traceviz.parsers.base import HEAD_BYTES, Match, Reader
from traceviz.parsers.nsys.sniff import EXPORTED_FILES
from traceviz.parsers.ranks.names import RANK_IN_NAME
from traceviz.parsers.registry import READERS
from traceviz.parsers.run.layout import KIND as RUN
from traceviz.parsers.run.layout import MANIFEST, SAMPLES_DESCRIPTION, SAMPLES_KIND
from traceviz.parsers.shared.json.stream import HEAD_TEXT_BYTES
from traceviz.parsers.shared.log_folders import SUFFIXES as CAPTURES
from traceviz.parsers.xplane.sniff import TRACE_JSON_SUFFIXES as TRACE_JSON
from traceviz.trace.trace_folder import MANIFEST_KIND
from traceviz.untrusted.json_documents import MOST_BYTES, object_of

ARCHIVE = "archive.json"
"""File that marks an archive of traceviz."""
ARCHIVE_KIND = "traceviz.archive"
CERTAIN_SUFFIXES = (
    *(".nsys-rep", ".qdrep", ".qdstrm", ".sqlite", ".nvvp", ".nvprof"),
    *CAPTURES,
    *TRACE_JSON,
)
"""Suffixes used only by traces. Such a file is a trace, possibly a damaged one."""
_DOCUMENTS = frozenset(
    f".{ending}"
    for endings in (
        "bat c cc cfg cpp cu cuh css go h hpp htm html ini ipynb java js jsx md o po proto py pyc pyi rs rst sh so tex",
        "toml ts tsv tsx yaml yml gif jpeg jpg mp4 pdf png svg ttf woff woff2",
        "apk ckpt docx egg h5 jar keras npy npz odt pickle pkl pptx pt pth safetensors whl xlsx",
    )
    for ending in endings.split()
)
"""Suffixes of documents, which may quote traces, and of zip files for other purposes."""
_JSON = (".json", ".json.gz")
_POINTER = b"version https://git-lfs.github.com/spec/"
_PROFILE_RUN = re.compile(r"(?:^|/)(?:plugins/profile/[^/]+|\d{4}(?:_\d\d){5}[^/]*)$")
"""Folders whose files are the hosts of one run: those in the profiler's own folder, or with similar names."""
_NOWHERE = Path(os.devnull)
"""Base of the paths given to readers. No file exists below it, so readers judge by the bytes, for members and files."""

Read = Callable[[str, int], bytes]
"""Returns the first bytes of a file by its name; empty if it cannot be read."""


def hidden_part(name: str) -> str:
    """Return the part of a path that is hidden, or private to programs; empty if there is none."""
    return next((part for part in name.split("/") if part.startswith(".") or part in {"__MACOSX", "__pycache__"}), "")


def head_length(name: str) -> int:
    """Return how many first bytes are needed to recognise a trace. JSON may start with a long list of devices."""
    return HEAD_TEXT_BYTES if name.lower().endswith(_JSON) else HEAD_BYTES


def is_trace_by_name(name: str) -> bool:
    """Return whether the name alone shows that the file is meant to be a trace."""
    return name.lower().endswith(CERTAIN_SUFFIXES)


def is_other_by_name(name: str) -> bool:
    """Return whether the name alone shows that the file is not a trace."""
    return os.path.splitext(name)[1].lower() in _DOCUMENTS and not is_trace_by_name(name)  # noqa: PTH122 (a name, not a path)


def may_be_trace(name: str) -> bool:
    """Return whether traces may have such a name."""
    return name.lower().endswith(_known_suffixes(READERS.all()))


@cache
def _known_suffixes(readers: tuple[Reader, ...]) -> tuple[str, ...]:
    return tuple(sorted({suffix for reader in readers for suffix in reader.suffixes} | set(CERTAIN_SUFFIXES)))


def is_trace(name: str, head: bytes) -> bool:
    """Return whether a file is a trace, is meant to be one, or represents one (a git-lfs pointer)."""
    if is_trace_by_name(name):
        return True
    if is_other_by_name(name) or not head:
        return False
    if head.startswith(_POINTER):
        return may_be_trace(name)
    path = _NOWHERE / name.rpartition("/")[2]
    return any(reader.match(head, path) != Match.NO for reader in READERS.all())


def whole_folders(names: Collection[str], read: Read, where: str) -> tuple[list[str], list[str]]:
    """Return the outermost folders that are one trace each, and the outermost archives of traceviz.

    Args:
        names: Paths of files.
        read: Returns their first bytes.
        where: Path of the folder that the names are relative to.

    Returns:
        Relative paths, in order; empty for that folder itself.
    """
    inside: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        folder, _, last = name.rpartition("/")
        inside[folder].add(last)
    kinds: dict[str, str] = {}
    for folder in sorted(inside):
        if "" in kinds or not kinds.keys().isdisjoint(parents(folder)):
            continue
        kind = _kind(folder, inside[folder], read, f"{where}/{folder}".rstrip("/"))
        if kind:
            kinds[folder] = kind
    archives = [folder for folder, kind in kinds.items() if kind == ARCHIVE_KIND]
    return [folder for folder in kinds if folder not in archives], archives


def _kind(folder: str, files: set[str], read: Read, path: str) -> str:
    """Return the kind of trace that a folder is as a whole; empty if it is only a folder."""
    prefix = f"{folder}/" if folder else ""
    for name, kinds in (
        (MANIFEST, {RUN, MANIFEST_KIND}),
        (SAMPLES_DESCRIPTION, {SAMPLES_KIND}),
        (ARCHIVE, {ARCHIVE_KIND}),
    ):
        if name in files and (kind := _read_kind(read(prefix + name, MOST_BYTES))) in kinds:
            return kind
    if any(f"{name}.parquet" in files for name in EXPORTED_FILES):
        return "nsys"
    if _PROFILE_RUN.search(path):
        hosts = [file for file in files if file.endswith(CAPTURES)] or [f for f in files if f.endswith(TRACE_JSON)]
        return "hosts" if len(hosts) > 1 else ""
    return ""


def _read_kind(text: bytes) -> str:
    kind = object_of(text).get("kind")
    return kind if isinstance(kind, str) else ""


def find_repetitions(names: Iterable[str], where: str) -> set[str]:
    """Return the files of TensorFlow's profiler that repeat a part of the capture in their folder."""
    inside: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        if name.endswith((*CAPTURES, *TRACE_JSON)):
            inside[name.rpartition("/")[0]].append(name)
    return {
        name
        for folder, files in inside.items()
        if _PROFILE_RUN.search(f"{where}/{folder}".rstrip("/")) and any(file.endswith(CAPTURES) for file in files)
        for name in files
        if name.endswith(TRACE_JSON)
    }


def jobs(names: Collection[str]) -> Mapping[str, str]:
    """Return the job of each trace whose name states a rank, if other ranks with the same name exist next to it.

    ::

        job1/rank0.json  job1/rank1.json    both of job1
        rank0/run.json   rank1/run.json     both of the folder above
        a_rank0.json  a_rank1.json  b.json  the first two of the job a_rank*.json

    Args:
        names: Paths of traces.
    """
    patterns: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for name in names:
        matches = list(RANK_IN_NAME.finditer(name))
        if matches:
            begin, end = matches[-1].span(1)
            patterns[f"{name[:begin]}*{name[end:]}"][int(name[begin:end])] = name
    return dict(_members({pattern: of for pattern, of in patterns.items() if len(of) > 1}, names))


def _members(patterns: Mapping[str, Mapping[int, str]], names: Collection[str]) -> Iterator[tuple[str, str]]:
    folders = {pattern: pattern[: pattern.index("*")].rpartition("/")[0] for pattern in patterns}
    around: defaultdict[str, int] = defaultdict(int)
    for name in names:
        for folder in (*parents(name), ""):
            around[folder] += 1
    for pattern, by_rank in patterns.items():
        folder = folders[pattern]
        last = pattern[len(folder) :].lstrip("/").split("/")[0]
        alone = around[folder] == len(by_rank)
        job = folder if alone else f"{folder}/{last}".lstrip("/")
        yield from ((name, job) for name in by_rank.values())
