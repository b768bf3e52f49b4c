"""Scrubbing a traceviz folder: tables of numbers and names, most of what is private left out when it was written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceviz import schema
from traceviz.errors import OutputError
from traceviz.scrub.properties import is_private, is_source, keeps_setting, without_folder, without_folders
from traceviz.scrub.result import listed
from traceviz.scrub.secrets import (
    REMOVED,
    Redactor,
    Secret,
    base_name,
    secrets_of_arguments,
    secrets_of_identity,
    secrets_of_text,
    secrets_of_variable,
)
from traceviz.tables import MANIFEST, TraceTables, load, read_manifest, write_tables

Column: TypeAlias = "pa.ChunkedArray[Any]"
Rows: TypeAlias = npt.NDArray[np.bool_]

_REMOVED_COLUMNS = {
    ("run", "command"): "command lines",
    ("run", "host"): "host names",
    ("devices", "uuid"): "ids of hardware",
}
_PROPERTY_TABLES = {"op_args": "text", "settings": "value"}
"""Tables of keys and values: the column of the values that are text."""
_NAMES_OF_SOURCE = ("host_ops", "steps", "nvtx")
"""Tables whose names may be Python frames, with the files that they are in."""
_OWN_KEYS = ("kind", "schema_version", "tables", "redacted")
_CLEANED = "texts cleaned of paths and secrets"
_PROPERTIES = "private properties"


def scrub_folder(source: Path, target: Path) -> tuple[Counter[str], int, int]:
    """Write a scrubbed copy of the traceviz folder ``source`` into the empty folder ``target``.

    Returns:
        What was removed and how often, the number of secrets looked for, and the bytes of text searched for them.

    Raises:
        DamagedTraceError: ``source`` breaks the contract.
        OutputError: a secret would have stayed in the output.
    """
    tables, manifest = load(source), read_manifest(source)
    redactor = Redactor.of(_found(tables), _vocabulary(tables))
    removed: Counter[str] = Counter()
    write_tables(target, _scrubbed(tables, redactor, removed), _provenance(manifest, redactor))
    _add_to_manifest(target, removed)
    return removed, len(redactor.secrets), _check(target, redactor)


def _found(tables: TraceTables) -> list[Secret]:
    """Secrets of what a folder stores on request: command line, host name, ids of devices."""
    run = tables.run_facts()
    found = list(secrets_of_arguments((run.get("command") or "").encode().split()))
    found += secrets_of_identity((run.get("host") or "").encode())
    uuids = _distinct_texts(tables.arrow("devices").column("uuid"))
    found += [Secret(uuid, certain=True) for uuid in uuids if len(uuid) >= 16]
    for name, column in _PROPERTY_TABLES.items():
        if name in tables:
            found += _secrets_of_properties(tables.arrow(name), column)
    if "host_ops" in tables:
        found += [
            secret for text in _distinct_texts(tables.arrow("host_ops")["name"]) for secret in secrets_of_text(text)
        ]
    return found


def _secrets_of_properties(table: pa.Table, values: str) -> Iterator[Secret]:
    """What private properties hold, and what the texts of others give away by their shape."""
    for text in _distinct_texts(table[values]):
        yield from secrets_of_text(text)
    private = _rows_of(table["key"], is_private)
    for row in table.select(["key", values]).filter(pa.array(private)).to_pylist():
        if row[values] is not None:
            yield from secrets_of_variable(row["key"].encode(), row[values].encode())


def _vocabulary(tables: TraceTables) -> Iterator[bytes]:
    yield from map(base_name, _distinct_texts(tables.arrow("processes").column("name")))
    for name in ("kernels", "cuda_api", "os_calls"):
        if name in tables:
            yield from _distinct_texts(tables.arrow(name).column("name"))


def _distinct_texts(values: Column) -> list[bytes]:
    """The different texts of a column, without nulls."""
    return [text.encode() for text in pc.unique(values).to_pylist() if text is not None]


def _scrubbed(tables: TraceTables, redactor: Redactor, removed: Counter[str]) -> Iterator[tuple[str, pa.Table]]:
    """Tables without secrets, one at a time; counts in ``removed`` what goes."""
    for name in tables:
        table = tables.arrow(name)
        if name in _PROPERTY_TABLES:
            table = _without_properties(table, _PROPERTY_TABLES[name], name, removed)
        columns = [
            _scrub_column(name, column, table.column(column.name), redactor, removed)
            for column in schema.table(name).columns
        ]
        yield name, pa.table(columns, schema=schema.table(name).arrow)  # the schema carries no metadata of the source


def _without_properties(table: pa.Table, values: str, name: str, removed: Counter[str]) -> pa.Table:
    """``table`` of keys and values without the texts that are private by their key, and without folders of sources."""
    texts = table[values].cast(pa.string()).combine_chunks()
    gone = _rows_of(table["key"], is_private)
    if name == "settings":
        pairs = zip(table["key"].to_pylist(), texts.to_pylist(), strict=True)
        gone = np.array([not keeps_setting(str(key), str(value)) for key, value in pairs], dtype=bool)
    gone &= texts.is_valid().to_numpy(zero_copy_only=False)
    removed[_PROPERTIES] += int(gone.sum())
    texts = _replaced(texts, gone, pa.array([REMOVED.decode()] * int(gone.sum()), pa.string()))
    sources = _rows_of(table["key"], is_source)
    if sources.any():
        named = pa.chunked_array([texts.filter(pa.array(sources))])
        texts = _replaced(
            texts, sources, _clean_texts(named, without_folders, removed).cast(pa.string()).combine_chunks()
        )
    return table.set_column(table.column_names.index(values), values, pa.chunked_array([texts]))


def _rows_of(keys: Column, judge: Callable[[str], bool]) -> Rows:
    """Rows whose key ``judge`` picks (bool), each distinct key judged once."""
    chosen = [key.decode() for key in _distinct_texts(keys) if judge(key.decode())]
    found = pc.is_in(keys.cast(pa.string()).combine_chunks(), pa.array(chosen, pa.string()))
    return found.to_numpy(zero_copy_only=False).copy()


def _replaced(texts: Any, rows: Rows, others: Any) -> Any:
    """``texts`` with ``others`` in place of those at ``rows``."""
    return pc.replace_with_mask(texts, pa.array(rows), others)


def _scrub_column(
    table: str, column: schema.Column, values: Column, redactor: Redactor, removed: Counter[str]
) -> Column:
    noun = _REMOVED_COLUMNS.get((table, column.name))
    if noun is not None:
        removed[noun] += len(values) - values.null_count
        return pa.chunked_array([pa.nulls(len(values), pa.string())])
    if column.type not in (schema.TEXT, schema.NAME):
        return values
    return _clean_texts(values, _cleaner(table, redactor), removed).cast(column.type)


def _cleaner(table: str, redactor: Redactor) -> Callable[[bytes], bytes]:
    if table == "notes" or table in _PROPERTY_TABLES:
        return redactor.clean_message
    if table in _NAMES_OF_SOURCE:
        return lambda name: redactor.clean(without_folder(name))
    if table == "processes":
        return lambda name: redactor.clean(base_name(name))
    return redactor.clean


def _clean_texts(values: Column, clean: Callable[[bytes], bytes], removed: Counter[str]) -> Column:
    """``values``, dictionary-encoded, with each distinct text cleaned once."""
    encoded = values.unify_dictionaries() if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    chunks, changed = [], 0
    for chunk in encoded.chunks:
        assert isinstance(chunk, pa.DictionaryArray)
        before = chunk.dictionary.to_pylist()
        after = pa.array([None if text is None else _cleaned(text, clean) for text in before], pa.string())
        differs = pc.not_equal(after, chunk.dictionary).cast(pa.int64())
        changed += int(pc.sum(differs.take(chunk.indices)).as_py() or 0)
        distinct = pc.unique(after)  # different texts may have become equal
        chunks.append(pa.DictionaryArray.from_arrays(pc.index_in(after, distinct).take(chunk.indices), distinct))
    removed[_CLEANED] += changed
    return pa.chunked_array(chunks, encoded.type)


def _cleaned(text: str, clean: Callable[[bytes], bytes]) -> str:
    return clean(text.encode()).decode("utf-8", "replace")


def _provenance(manifest: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """What the manifest says of the source, cleaned; a path keeps its base name."""
    return {key: _clean_json(value, redactor) for key, value in manifest.items() if key not in _OWN_KEYS}


def _clean_json(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        is_path = value.startswith(("/", "~", "./", "../")) or value[1:3] == ":\\"
        text = base_name(value.encode()) if is_path else value.encode()
        return redactor.clean_message(text).decode("utf-8", "replace")
    if isinstance(value, list):
        return [_clean_json(item, redactor) for item in value]
    if isinstance(value, dict):
        return {key: _clean_json(item, redactor) for key, item in value.items()}
    return value


def _add_to_manifest(target: Path, removed: Counter[str]) -> None:
    path = target / MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["redacted"] = dict(listed(removed))
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _check(target: Path, redactor: Redactor) -> int:
    """Read everything back and look for the secrets in it; returns the bytes of text searched."""
    manifest = (target / MANIFEST).read_bytes()
    size = len(manifest)
    if redactor.holds(manifest):
        raise _leak(MANIFEST)
    tables = load(target)
    for name in tables:
        for column in schema.table(name).columns:
            if column.type in (schema.TEXT, schema.NAME):
                texts = _distinct_texts(tables.arrow(name).column(column.name))
                size += sum(map(len, texts))
                if any(map(redactor.holds, texts)):
                    raise _leak(f"{name}.{column.name}")
    return size


def _leak(where: str) -> OutputError:
    return OutputError(
        f"A secret of the source would have stayed in the output, in {where}.",
        "Nothing was written.",
        "Convert the source again without --keep-private, and scrub that.",
    )
