"""Scrubbing folders of recordings: run folders of ``traceviz collect``, log folders, traces of several ranks.

Secrets of any file are searched in all files. Each file is rewritten at its relative path, without hosts and users in
its name. Files that cannot be rewritten are skipped and listed. Links are not followed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from traceviz.core.errors import DamagedTraceError, OutputError, TracevizError, UnknownFormatError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.registry import trace_readers
from traceviz.parsers.run.folder import read_run
from traceviz.parsers.run.layout import MANIFEST, TABLES, is_run_folder
from traceviz.parsers.run.readers import ResourceSamplesReader
from traceviz.parsers.run.samples import PART_SCHEMA
from traceviz.scrub.formats.documents import (
    OWN_WORDS,
    check_content,
    clean_document,
    encoded,
    kept_command,
    secrets_of_document,
)
from traceviz.scrub.formats.registry import file_format, format_of, secrets_of_file
from traceviz.scrub.formats.tables import clean_texts, scrub_folder, secrets_of_folder
from traceviz.scrub.result import MANIFEST as OUR_MANIFEST
from traceviz.scrub.result import Outcome
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.search import PACKED, check_file, leak
from traceviz.scrub.secrets.secrets import secrets_of_text
from traceviz.scrub.secrets.shapes import PATH, REMOVED
from traceviz.scrub.secrets.values import Secret
from traceviz.trace.tables import write_tables
from traceviz.trace.trace_folder import is_trace_folder
from traceviz.untrusted.json_documents import read_document
from traceviz.untrusted.parquet import DAMAGE, read_parquet

MOST_FILES = 10_000
"""Maximum number of files in a folder of recordings."""
_MERGED = ".merged"
"""Temporary folder for tables that a run folder lacks."""

LeftOut = list[tuple[str, str]]


@dataclass(slots=True)
class _Copy:
    """State of scrubbing a folder.

    Args:
        source: The folder. It is only read.
        target: An empty folder.
        known: Secrets of all its files.
    """

    source: Path
    target: Path
    known: frozenset[Secret]
    redactor: Redactor = field(init=False)
    removed: Counter[str] = field(default_factory=Counter)
    left_out: LeftOut = field(default_factory=list)
    target_paths: dict[str, str] = field(default_factory=dict)
    searched: int = 0
    secrets: int = 0

    def __post_init__(self) -> None:
        self.redactor = Redactor.of(self.known, OWN_WORDS)
        self.secrets = len(self.redactor.secrets)

    def count(self, outcome: Outcome) -> None:
        """Add the outcome of one file or of the tables."""
        removed, secrets, size = outcome
        self.removed.update(removed)
        self.secrets = max(self.secrets, secrets)
        self.searched += size


def secrets_of_recordings(source: Path) -> Iterator[Secret]:
    """Yield the secrets of all files of a folder.

    Raises:
        OSError: a file cannot be read.
    """
    for path in _files(source):
        yield from secrets_of_text(path.relative_to(source).as_posix().encode(errors="replace"))
        if not _is_part(path):
            yield from secrets_of_file(path)
            continue
        with suppress(DamagedTraceError):  # the file is skipped
            for text in _texts_of_samples(_samples(path)):
                yield from secrets_of_text(text)
    tables = source / TABLES  # tables of a run folder
    if is_trace_folder(tables) and not tables.is_symlink():
        with suppress(TracevizError):  # the raw recordings have the same secrets, and the tables are rewritten
            yield from secrets_of_folder(tables)


def scrub_recordings(source: Path, target: Path) -> tuple[Counter[str], int, int, LeftOut]:
    """Write a scrubbed copy of a folder of recordings into the empty folder ``target``.

    Returns:
        Kinds and counts of removed data, the number of secrets, the number of searched bytes, and the name of
        each skipped file, with the reason.

    Raises:
        UnknownFormatError: no file of ``source`` can be rewritten.
        DamagedTraceError: a file breaks the rules of its format.
        OutputError: a secret would remain in the output.
    """
    copy = _Copy(source, target, frozenset(secrets_of_recordings(source)))
    is_run = is_run_folder(source)
    for path in _files(source):
        if not (is_run and path == source / MANIFEST):
            _write_file(copy, path)
    if is_run:
        _write_run(copy)
    if not any(path.is_file() for path in target.rglob("*")):
        names = ", ".join(name for name, _ in copy.left_out[:3]) or "no file"
        raise UnknownFormatError(
            f"{source} holds nothing that scrub can write again.",
            f"It holds {names}.",
            "Convert first, and scrub that: traceviz convert TRACE -o DIR.",
        )
    for path in target.rglob("*"):
        if copy.redactor.holds(path.relative_to(target).as_posix().encode(errors="replace")):
            raise OutputError(
                "A secret of the source would have stayed in the name of a file of the output.",
                "Nothing was written.",
                "Rename the file in the source.",
            )
    return +copy.removed, copy.secrets, copy.searched, copy.left_out


# --- the files of a folder -------------------------------------------------------------------------------------------


def _files(folder: Path) -> list[Path]:
    """Return the files below ``folder`` in order, except those of traceviz folders and of an earlier scrub.

    Raises:
        DamagedTraceError: there are too many files for a recording.
    """
    paths: list[Path] = []
    for directory, names, files in os.walk(folder):
        here = Path(directory)
        names[:] = sorted(name for name in names if not (here / name).is_symlink())
        if is_trace_folder(here):
            continue
        paths += [here / name for name in sorted(files) if (here / name).is_file() and name != OUR_MANIFEST]
        if len(paths) > MOST_FILES:
            raise DamagedTraceError(f"{folder} holds more than {MOST_FILES:,} files: it is no recording.")
    return paths


def _write_file(copy: _Copy, path: Path) -> None:
    name = _cleaned(copy, path.relative_to(copy.source).as_posix())
    if path.is_symlink():
        copy.left_out.append((name, "a link"))
        return
    is_part = _is_part(path)
    file = None if is_part else file_format(path)
    if file is None and not is_part:
        format_name = format_of(path)
        why = "no trace" if format_name is None else f"{format_name}: a format that scrub cannot write again"
        copy.left_out.append((name, why))
        return
    target = copy.target / _target_path(copy, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        outcome = _write_samples(copy, path, target) if file is None else file.scrub(path, target, copy.known)
    except (DamagedTraceError, UnknownFormatError) as error:
        target.unlink(missing_ok=True)
        copy.left_out.append((name, f"damaged: {_cleaned(copy, error.why or error.what)}"))
        return
    copy.count(outcome)
    copy.target_paths[path.relative_to(copy.source).as_posix()] = target.relative_to(copy.target).as_posix()


def _cleaned(copy: _Copy, text: str) -> str:
    return copy.redactor.clean_message(text.encode(errors="replace")).decode("utf-8", "replace")


def _target_path(copy: _Copy, path: Path) -> PurePosixPath:
    """Return the path of a file in the output: without hosts and users, and numbered if two would be equal."""
    parts = []
    for part in path.relative_to(copy.source).parts:
        clean = copy.redactor.clean(part.encode(errors="replace"))
        parts.append(
            clean.replace(REMOVED, b"host").replace(PATH, b"path").decode("utf-8", "replace").replace("/", "_")
        )
    target = PurePosixPath(*parts)
    taken = set(copy.target_paths.values())
    number = 1
    while target.as_posix() in taken:
        stem, dot, endings = parts[-1].partition(".")
        target = PurePosixPath(*parts[:-1], f"{stem}{number}{dot}{endings}")
        number += 1
    return target


def _is_part(path: Path) -> bool:
    """Return whether a file is a part of resource samples."""
    return path.suffix == ".parquet" and format_of(path.parent) == ResourceSamplesReader.format


def _samples(path: Path) -> pa.Table:
    try:
        return read_parquet(pa.BufferReader(path.read_bytes())).select(PART_SCHEMA.names).cast(PART_SCHEMA)
    except (KeyError, *DAMAGE) as error:
        raise DamagedTraceError(f"{path} cannot be read.", str(error)) from error


def _texts_of_samples(table: pa.Table) -> Iterator[bytes]:
    for name in ("metric", "unit"):
        yield from (text.encode() for text in table[name].unique().to_pylist() if text is not None)


def _write_samples(copy: _Copy, path: Path, target: Path) -> Outcome:
    """Write a part of resource samples: numbers, and names of quantities.

    Raises:
        DamagedTraceError: the part cannot be read.
    """
    removed: Counter[str] = Counter()
    table = _samples(path)
    columns = [
        clean_texts(table[column.name], copy.redactor.clean, removed).cast(column.type)
        if pa.types.is_dictionary(column.type)
        else table[column.name]
        for column in PART_SCHEMA
    ]
    pq.write_table(pa.table(columns, schema=PART_SCHEMA), target, compression="zstd")
    if any(map(copy.redactor.holds, _texts_of_samples(pq.read_table(target)))):
        raise leak("in the samples of resources")
    return removed, len(copy.redactor.secrets), check_file(target, copy.redactor, PACKED)


# --- run folders -----------------------------------------------------------------------------------------------------


def _write_run(copy: _Copy) -> None:
    """Write the manifest of a run, and its tables. Missing tables are merged now."""
    _write_tables(copy)
    try:
        stated = read_document(copy.source / MANIFEST)
    except (OSError, ValueError) as error:
        raise DamagedTraceError(f"{copy.source / MANIFEST} cannot be read.", str(error)) from error
    stated = stated if isinstance(stated, dict) else {}
    command = kept_command(stated)
    known = Redactor.of([*secrets_of_document(stated), *copy.known], OWN_WORDS)
    clean = clean_document(stated, known, copy.removed)
    if command is not None:
        clean["command"] = _cleaned(copy, command)
    for was, collector in zip(stated.get("collectors") or (), clean.get("collectors") or (), strict=False):
        if isinstance(was, dict) and isinstance(collector, dict):
            collector["sources"] = _moved(was.get("sources"), copy.target_paths)
    content = encoded(clean)
    check_content(content, known)
    indented = json.dumps(clean, indent=2, ensure_ascii=False).encode(errors="replace")
    (copy.target / MANIFEST).write_bytes(indented + b"\n")
    copy.searched += len(content)


def _write_tables(copy: _Copy) -> None:
    tables = copy.source / TABLES
    target = copy.target / TABLES
    if not is_trace_folder(tables):
        tables = copy.target / _MERGED
        tables.mkdir()
        try:
            write_tables(tables, read_run(copy.source, ReadRequest(), trace_readers()), {"source": copy.source.name})
        except TracevizError as error:
            copy.left_out.append((TABLES, _cleaned(copy, error.what)))
            shutil.rmtree(tables)
            return
    target.mkdir()
    try:
        copy.count(scrub_folder(tables, target, copy.known))
    finally:
        if tables.parent == copy.target:
            shutil.rmtree(tables)


def _moved(sources: Any, target_paths: Mapping[str, str]) -> list[str]:
    """Return the paths of a collector's recordings in the output, without skipped ones."""
    stated = [source for source in sources if isinstance(source, str)] if isinstance(sources, list) else []
    folders = {
        parent.as_posix(): PurePosixPath(new).parents[level].as_posix()
        for old, new in target_paths.items()
        for level, parent in enumerate(PurePosixPath(old).parents)
    }
    return [target_paths.get(path) or folders[path] for path in stated if path in target_paths or path in folders]
