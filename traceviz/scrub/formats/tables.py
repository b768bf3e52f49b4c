"""Scrubbing a traceviz folder. Its tables hold numbers and names; most private data was left out on writing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from traceviz.core.errors import OutputError
from traceviz.scrub.formats.documents import encoded
from traceviz.scrub.result import CLEANED, HARDWARE_IDS, HOSTS, PROPERTIES, Outcome, listed
from traceviz.scrub.secrets.addresses import is_version
from traceviz.scrub.secrets.properties import (
    is_path,
    is_private,
    is_source,
    keeps_setting,
    source_file,
    without_folder,
)
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.search import PACKED, check_file, leak
from traceviz.scrub.secrets.secrets import (
    base_name,
    secrets_of_arguments,
    secrets_of_property,
    secrets_of_text,
    secrets_of_variable,
)
from traceviz.scrub.secrets.shapes import REMOVED
from traceviz.scrub.secrets.values import Secret, secrets_of_identity
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables, load, read_manifest, write_tables
from traceviz.trace.trace_folder import MANIFEST
from traceviz.untrusted.json_documents import read_document

Column: TypeAlias = "pa.ChunkedArray[Any]"
Rows: TypeAlias = npt.NDArray[np.bool_]

_REMOVED_COLUMNS = {
    ("run", "command"): "command lines",
    ("run", "host"): HOSTS,
    ("devices", "uuid"): HARDWARE_IDS,
}
_PROPERTY_TABLES = {"op_args": "text", "settings": "value"}
"""Tables of keys and values, with the column of the text values."""
_NAMES_OF_SOURCE = ("host_ops", "steps", "nvtx")
"""Tables whose names may be Python frames, which contain file names."""
_ENDINGS = (b"json trace pt gz xplane pb sqlite nsys rep nvvp nvprof csv raw tables run rank",)
"""Words of file names. A host with such a name must not change them."""
_OWN_KEYS = ("kind", "schema_version", "tables", "redacted")


def secrets_of_folder(source: Path) -> list[Secret]:
    """Return the secrets of a traceviz folder.

    Raises:
        DamagedTraceError: the folder violates the schema.
    """
    return secrets_of_tables(load(source))


def scrub_folder(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of the traceviz folder ``source`` into the empty folder ``target``.

    Args:
        source: The folder. It is only read.
        target: An empty folder.
        known: Secrets that are not in the folder, such as those of its source trace
            (:func:`traceviz.scrub.secrets_in`). Tables do not hold the environment, but a range may name its values.

    Returns:
        Kinds and counts of removed data, the number of secrets, and the number of searched bytes of text.

    Raises:
        DamagedTraceError: ``source`` violates the schema.
        OutputError: a secret would remain in the output.
    """
    facts = read_manifest(source)
    scrubbing = _Scrubbing.of(load(source), facts, known)
    write_tables(target, scrubbing.tables(), scrubbing.facts(facts))
    path = target / MANIFEST
    written = {**read_document(path), "redacted": dict(listed(scrubbing.removed))}
    path.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    # All files are read back. Pages are compressed, so their texts are decoded. The raw bytes are searched, too, for
    # data that no reader shows.
    size = 0
    for name, file_path in load(target).sources.items():
        if isinstance(file_path, Path):
            columns = [column.name for column in _columns_of_text(name)]  # numbers hold no text
            with pq.ParquetFile(file_path) as file:
                size += _check_texts(name, file.read(columns), scrubbing.redactor)
    size += _check_files(target, scrubbing.redactor)
    return scrubbing.removed, len(scrubbing.redactor.secrets), size


def scrub_tables(
    tables: TraceTables, facts: Mapping[str, Any], target: Path, known: Iterable[Secret] = ()
) -> tuple[TraceTables, Outcome]:
    """Write ``tables`` as a scrubbed folder into the empty folder ``target``; for tables that fit into memory.

    Like :func:`scrub_folder`, but the texts are searched before they are written, and nothing is read back.

    Args:
        tables: The tables of a trace.
        facts: Facts of its manifest about the source.
        target: An empty folder.
        known: Secrets that are not in the tables.

    Returns:
        The written tables, and the result as of :func:`scrub_folder`.

    Raises:
        OutputError: a secret would remain in the output.
    """
    scrubbing = _Scrubbing.of(tables, facts, known)
    redactor = scrubbing.redactor
    clean = TraceTables(dict(scrubbing.tables()))
    size = sum(_check_texts(name, clean.arrow(name), redactor) for name in clean)
    redacted = {"redacted": dict(listed(scrubbing.removed))}
    write_tables(target, ((name, clean.arrow(name)) for name in clean), {**scrubbing.facts(facts), **redacted})
    size += _check_files(target, redactor)
    return clean, (scrubbing.removed, len(redactor.secrets), size)


@dataclass(frozen=True, slots=True)
class _Scrubbing:
    """The redactors for the tables of a trace, and the counts of removed data."""

    source: TraceTables
    redactor: Redactor
    of_manifest: Redactor
    removed: Counter[str]

    @classmethod
    def of(cls, tables: TraceTables, facts: Mapping[str, Any], known: Iterable[Secret]) -> _Scrubbing:
        secrets = [*secrets_of_tables(tables), *secrets_of_text(encoded(_stated(facts))), *known]
        vocabulary = [*map(base_name, _distinct_texts(tables.arrow("processes").column("name")))]
        for name in ("kernels", "cuda_api", "os_calls"):
            if name in tables:
                vocabulary += _distinct_texts(tables.arrow(name).column("name"))
        return cls(tables, Redactor.of(secrets, vocabulary), Redactor.of(secrets, _ENDINGS), Counter())

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield tables without secrets, one at a time."""
        for name in self.source:
            table = self.source.arrow(name)
            if name in _PROPERTY_TABLES:
                table = _without_properties(table, _PROPERTY_TABLES[name], name, self.redactor, self.removed)
            if name == "stack_frames":
                table = _without_private_folders(table, self.removed)
            declared = schema.table(name)
            columns = [_scrub_column(table, name, column, self.redactor, self.removed) for column in declared.columns]
            yield name, pa.table(columns, schema=declared.arrow)  # the schema carries no metadata of the source

    def facts(self, stated: Mapping[str, Any]) -> dict[str, Any]:
        """Return the manifest's facts about the source, cleaned."""
        return {key: _clean_json(value, self.of_manifest) for key, value in _stated(stated).items()}


def _stated(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a manifest about the source."""
    return {key: value for key, value in facts.items() if key not in _OWN_KEYS}


def secrets_of_tables(tables: TraceTables) -> list[Secret]:
    """Return the secrets of tables: stored command line, host name and device ids, and shapes in all texts."""
    run = tables.run_facts()
    program, *arguments = (run.get("command") or "").encode().split() or [b""]
    host = (run.get("host") or "").encode()
    secrets = [*secrets_of_text(program), *secrets_of_arguments(arguments), *secrets_of_identity(host)]
    uuids = _distinct_texts(tables.arrow("devices").column("uuid"))
    secrets += [Secret(uuid, certain=True) for uuid in uuids if len(uuid) >= 16]
    for name, column in _PROPERTY_TABLES.items():
        if name not in tables:
            continue
        table = tables.arrow(name)
        for text in _distinct_texts(table[column].filter(pa.array(~_versions(table, column)))):
            secrets += secrets_of_text(text)
        private = _rows_of(table["key"], is_private)
        for row in table.select(["key", column]).filter(pa.array(private)).to_pylist():
            if row[column] is not None and not keeps_setting(row["key"], row[column]):
                secrets += secrets_of_variable(row["key"].encode(), row[column].encode())
    for name in tables:
        for stated in _columns_of_text(name):
            if _PROPERTY_TABLES.get(name) != stated.name:  # these are judged with their keys
                key = stated.name if name == "run" else ""
                texts = _distinct_texts(tables.arrow(name)[stated.name])
                secrets += [secret for text in texts for secret in secrets_of_property(key, text)]
    return secrets


def _distinct_texts(values: Column) -> list[bytes]:
    """Return the distinct texts of a column, without nulls."""
    return [text.encode() for text in pc.unique(values).to_pylist() if text is not None]


def _without_private_folders(frames: pa.Table, removed: Counter[str]) -> pa.Table:
    """Return ``frames`` with files shortened by :func:`source_file`."""
    stated, origins = (frames[name].cast(pa.string()) for name in ("file", "origin"))

    def shortened(origin: str) -> Column:
        clean = clean_texts(stated, lambda file: source_file(file.decode(), origin).encode(), Counter())
        return clean.cast(pa.string())

    files = shortened("")
    for origin in ("library", "standard"):
        files = pc.if_else(pc.is_in(origins, pa.array([origin])), shortened(origin), files)
    removed[CLEANED] += int(pc.sum(pc.not_equal(files, stated).cast(pa.int64())).as_py() or 0)
    return frames.set_column(frames.column_names.index("file"), "file", files)


def _without_properties(table: pa.Table, values: str, name: str, redactor: Redactor, removed: Counter[str]) -> pa.Table:
    """Return ``table`` of keys and values without texts that their key makes private, and without source folders."""
    texts = table[values].cast(pa.string()).combine_chunks()
    gone = _rows_of(table["key"], is_private)
    if name == "settings":
        pairs = zip(table["key"].to_pylist(), texts.to_pylist(), strict=True)
        gone = np.array([not keeps_setting(str(key), str(value)) for key, value in pairs], dtype=bool)
    gone &= texts.is_valid().to_numpy(zero_copy_only=False)
    removed[PROPERTIES] += int(gone.sum())
    texts = _replaced(texts, gone, pa.array([REMOVED.decode()] * int(gone.sum()), pa.string()))
    sources = _rows_of(table["key"], is_source)
    if sources.any():
        named = pa.chunked_array([texts.filter(pa.array(sources))])
        texts = _replaced(
            texts, sources, clean_texts(named, redactor.clean_source, removed).cast(pa.string()).combine_chunks()
        )
    return table.set_column(table.column_names.index(values), values, pa.chunked_array([texts]))


def _rows_of(keys: Column, judge: Callable[[str], bool]) -> Rows:
    """Return the rows whose key ``judge`` accepts (bool). Each distinct key is judged once."""
    picked = [key.decode() for key in _distinct_texts(keys) if judge(key.decode())]
    is_picked = pc.is_in(keys.cast(pa.string()).combine_chunks(), pa.array(picked, pa.string()))
    return is_picked.to_numpy(zero_copy_only=False).copy()


def _replaced(texts: Any, rows: Rows, others: Any) -> Any:
    """Return ``texts`` with those at ``rows`` replaced by ``others``."""
    return pc.replace_with_mask(texts, pa.array(rows), others)


def _versions(table: pa.Table, values: str) -> Rows:
    """Return the rows that are versions, which look like addresses: ``CURAND_VERSION``, ``10.3.4.107``."""
    by_key = _rows_of(table["key"], lambda key: is_version(key, "1.0"))
    return by_key & _rows_of(table[values], lambda text: is_version("version", text))


def _scrub_column(
    rows: pa.Table, table: str, column: schema.Column, redactor: Redactor, removed: Counter[str]
) -> Column:
    values = rows.column(column.name)
    noun = _REMOVED_COLUMNS.get((table, column.name))
    if noun is not None:
        removed[noun] += len(values) - values.null_count
        return pa.chunked_array([pa.nulls(len(values), pa.string())])
    if column.type not in (schema.TEXT, schema.NAME):
        return values
    if _PROPERTY_TABLES.get(table) == column.name:
        # Versions look like addresses: only secrets are removed from them.
        with_secret = _rows_of(rows[column.name], lambda text: redactor.holds(text.encode()))
        versions = _versions(rows, column.name) & ~with_secret
        texts = rows[column.name].cast(pa.string()).combine_chunks()
        others = pa.chunked_array([texts.filter(pa.array(~versions))])
        clean = clean_texts(others, redactor.clean_message, removed).cast(pa.string()).combine_chunks()
        return pa.chunked_array([_replaced(texts, ~versions, clean)]).cast(column.type)
    return clean_texts(values, _cleaner(table, column.name, redactor), removed).cast(column.type)


def _cleaner(table: str, column: str, redactor: Redactor) -> Callable[[bytes], bytes]:
    if table == "run":
        return lambda text: redactor.clean_property(column, text)
    if table == "notes" or table in _PROPERTY_TABLES:
        return redactor.clean_message
    if table in _NAMES_OF_SOURCE:
        return lambda name: redactor.clean(without_folder(name))
    if table == "processes":
        return lambda name: redactor.clean(base_name(name))
    return redactor.clean


def clean_texts(values: Column, clean: Callable[[bytes], bytes], removed: Counter[str]) -> Column:
    """Return dictionary-encoded ``values``, with each distinct text cleaned once."""
    if values.null_count == len(values):  # no text, even if a dictionary has words that no row has
        kind = values.type if pa.types.is_dictionary(values.type) else pa.dictionary(pa.int32(), values.type)
        return pa.chunked_array([pa.nulls(len(values), kind)])
    encoded = values.unify_dictionaries() if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    chunks, changed = [], 0
    for chunk in encoded.chunks:
        assert isinstance(chunk, pa.DictionaryArray)
        before = chunk.dictionary.to_pylist()
        cleaned = [None if text is None else clean(text.encode()).decode("utf-8", "replace") for text in before]
        after = pa.array(cleaned, pa.string())
        differs = pc.not_equal(after, chunk.dictionary).cast(pa.int64())
        changed += int(pc.sum(differs.take(chunk.indices)).as_py() or 0)
        distinct = pc.unique(after)  # different texts may have become equal
        chunks.append(pa.DictionaryArray.from_arrays(pc.index_in(after, distinct).take(chunk.indices), distinct))
    removed[CLEANED] += changed
    return pa.chunked_array(chunks, encoded.type)


def _clean_json(value: Any, redactor: Redactor) -> Any:
    """Clean a fact of the manifest about the source. A path keeps its base name."""
    if isinstance(value, str):
        text = base_name(value.encode()) if is_path(value) else value.encode()
        return redactor.clean_message(text).decode("utf-8", "replace")
    if isinstance(value, list):
        return [_clean_json(item, redactor) for item in value]
    if isinstance(value, dict):
        return {_clean_json(key, redactor): _clean_json(item, redactor) for key, item in value.items()}
    return value


def _check_texts(name: str, table: pa.Table, redactor: Redactor) -> int:
    """Search the texts of a table for secrets; return their number of bytes."""
    size = 0
    for column in _columns_of_text(name):
        # Unused entries of dictionaries are searched, since they are written, too.
        values = table.column(column.name)
        if pa.types.is_dictionary(values.type):
            words = [chunk.dictionary for chunk in values.chunks if isinstance(chunk, pa.DictionaryArray)]
            values = pa.chunked_array(words, pa.string())
        texts = _distinct_texts(values)
        size += sum(map(len, texts))
        if any(map(redactor.holds, texts)):
            raise _leak(f"{name}.{column.name}")
    return size


def _columns_of_text(name: str) -> list[schema.Column]:
    return [column for column in schema.table(name).columns if column.type in (schema.TEXT, schema.NAME)]


def _check_files(target: Path, redactor: Redactor) -> int:
    """Search the manifest and the bytes of all files for secrets; return the number of bytes in the manifest."""
    manifest = (target / MANIFEST).read_bytes()
    if redactor.holds(manifest):
        raise _leak(MANIFEST)
    for path in target.iterdir():
        check_file(path, redactor, PACKED)
    return len(manifest)


def _leak(where: str) -> OutputError:
    return leak(f"in {where}", "Convert the source again without --keep-private, and scrub that.")
