"""Which of many files are traces: by names and first bytes, wherever they lie and however they are packed.

A folder is one trace if the files in it are parts of one: a run of ``traceviz collect``, a folder of ``traceviz
convert``, samples of resources, a ``parquetdir`` export of nsys, the hosts of one run of TensorFlow's profiler. Other
folders are searched, and every trace in them counts for itself: also the runs of a log folder of TensorBoard, although
readers would choose the newest.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from traceviz.archive.sources.packed.index import parents
from traceviz.parsers.base import HEAD_BYTES, Match
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
"""Suffixes of traces only: such a file is a trace, or a damaged one."""
_KNOWN_SUFFIXES = tuple(sorted({suffix for reader in READERS for suffix in reader.suffixes} | set(CERTAIN_SUFFIXES)))
_DOCUMENTS = frozenset(
    f".{ending}"
    for endings in (
        "bat c cc cfg cpp cu cuh css go h hpp htm html ini ipynb java js jsx md o po proto py pyc pyi rs rst sh so tex",
        "toml ts tsv tsx yaml yml gif jpeg jpg mp4 pdf png svg ttf woff woff2",
        "apk ckpt docx egg h5 jar keras npy npz odt pickle pkl pptx pt pth safetensors whl xlsx",
    )
    for ending in endings.split()
)
"""Suffixes of documents, which quote traces at most, and of zip files for other purposes."""
_JSON = (".json", ".json.gz")
_POINTER = b"version https://git-lfs.github.com/spec/"
_PROFILE_RUN = re.compile(r"(?:^|/)(?:plugins/profile/[^/]+|\d{4}(?:_\d\d){5}[^/]*)$")
"""Folders whose files are the hosts of one run: those in the profiler's own folder, or named like these."""
_NOWHERE = Path(os.devnull)
"""Readers get a path below this, where no file is, so that they judge by the bytes, for a member as for a file."""

Read = Callable[[str, int], bytes]
"""Gives the first bytes of a file by its name; none if it cannot be read."""


def hidden_part(name: str) -> str:
    """The part of a path that is hidden, or private to programs; empty if there is none."""
    return next((part for part in name.split("/") if part.startswith(".") or part in {"__MACOSX", "__pycache__"}), "")


def head_length(name: str) -> int:
    """First bytes that tell whether a file is a trace: more for JSON, where a list of devices may come first."""
    return HEAD_TEXT_BYTES if name.lower().endswith(_JSON) else HEAD_BYTES


def is_trace_by_name(name: str) -> bool:
    """Whether the name alone shows that it is meant to be a trace."""
    return name.lower().endswith(CERTAIN_SUFFIXES)


def is_other_by_name(name: str) -> bool:
    """Whether the name alone shows that it is something else."""
    return os.path.splitext(name)[1].lower() in _DOCUMENTS and not is_trace_by_name(name)  # noqa: PTH122 (a name, not a path)


def may_be_trace(name: str) -> bool:
    """Whether traces have such names, among others."""
    return name.lower().endswith(_KNOWN_SUFFIXES)


def is_trace(name: str, head: bytes) -> bool:
    """Whether it is a trace, is meant to be one, or represents one (a git-lfs pointer)."""
    if is_trace_by_name(name):
        return True
    if is_other_by_name(name) or not head:
        return False
    if head.startswith(_POINTER):
        return may_be_trace(name)
    path = _NOWHERE / name.rpartition("/")[2]
    return any(reader.sniff(head, path) != Match.NO for reader in READERS)


def whole_folders(names: Collection[str], read: Read, where: str) -> tuple[list[str], list[str]]:
    """Folders that are one trace each, and those that are archives of traceviz; the outermost of each.

    Args:
        names: Paths of files.
        read: Gives their first bytes.
        where: Path of the folder that the names are from.

    Returns:
        Paths from there, in order; empty for that folder itself.
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
    """The kind of trace that a folder is as a whole; empty if it is only a folder."""
    prefix = f"{folder}/" if folder else ""
    for name, kinds in (
        (MANIFEST, {RUN, MANIFEST_KIND}),
        (SAMPLES_DESCRIPTION, {SAMPLES_KIND}),
        (ARCHIVE, {ARCHIVE_KIND}),
    ):
        if name in files and (kind := _stated_kind(read(prefix + name, MOST_BYTES))) in kinds:
            return kind
    if any(f"{name}.parquet" in files for name in EXPORTED_FILES):
        return "nsys"
    if _PROFILE_RUN.search(path):
        hosts = [file for file in files if file.endswith(CAPTURES)] or [f for f in files if f.endswith(TRACE_JSON)]
        return "hosts" if len(hosts) > 1 else ""
    return ""


def _stated_kind(text: bytes) -> str:
    kind = object_of(text).get("kind")
    return kind if isinstance(kind, str) else ""


def beside_captures(names: Iterable[str], where: str) -> set[str]:
    """Files of TensorFlow's profiler that repeat a part of the capture in their folder."""
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
    """The job of each trace whose name states a rank, if traces of other ranks with the same name lie beside it.

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
