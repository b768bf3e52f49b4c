"""Recognition of the framework by the names in a trace: ``trace.names.framework_signs`` on Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array, StringArray, pc
from traceviz.parsers.shared.events.names import decode
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.trace.names.framework_signs import ALL_SIGNS, Identified, Sign, SignKind, identify, library_versions
from traceviz.trace.rows_to_table import rows_to_table

_MOST_RANGES = 20_000
"""Number of ranges to search: a framework's own names appear from the first step on; programs may add millions."""


def identify_framework(names: Mapping[SignKind, StringArray], versions: Mapping[str, str]) -> Identified:
    """Return the framework that distinct ``names`` of each kind show; ``versions`` by framework, if stated."""
    counts: dict[Sign, int] = {}
    libraries: list[str] = []
    known = {kind: _with_any_sign(kind, of_kind) for kind, of_kind in names.items() if len(of_kind)}
    for sign in ALL_SIGNS:
        of_kind = known.get(sign.kind)
        if of_kind is None:
            continue
        matching = of_kind.filter(pc.match_substring_regex(of_kind, sign.pattern).fill_null(False))
        counts[sign] = len(matching)
        libraries += matching.to_pylist() if sign.kind == "libraries" else []
    return identify(counts, {**library_versions(libraries), **versions})


def _with_any_sign(kind: SignKind, names: StringArray) -> StringArray:
    """Return the few ``names`` that any sign of a kind matches, in one pass."""
    pattern = "|".join(f"(?:{sign.pattern})" for sign in ALL_SIGNS if sign.kind == kind)
    return names.filter(pc.match_substring_regex(names, pattern).fill_null(False))


def pool(raw: RawTables) -> StringArray:
    """Return all strings that events of a file refer to."""
    if raw.string_table not in raw.names or "value" not in raw.columns(raw.string_table):
        return pa.array([], pa.string())
    return _distinct(batch["value"] for batch in raw.stream(raw.string_table, (), ("value",)))


def texts(raw: RawTables, table: str, column: str) -> StringArray:
    """Return distinct texts of the first rows of ``table``; none if it has no such column."""
    if column not in raw.columns(table):
        return pa.array([], pa.string())
    columns, left = [], _MOST_RANGES
    for batch in raw.stream(table, (), (column,)):
        columns.append(batch[column].slice(0, left))
        left -= batch.num_rows
        if left <= 0:
            break
    return _distinct(columns)


def _distinct(columns: Iterable[Array]) -> StringArray:
    parts = [pc.unique(column) for column in columns]
    return decode(pc.unique(pa.concat_arrays(parts))) if parts else pa.array([], pa.string())


def evidence_table(found: Identified) -> pa.Table | None:
    """Return table ``settings`` with the evidence for the framework; ``None`` if there is none."""
    rows = [{"key": key, "value": value} for key, value in found.evidence]
    return rows_to_table("settings", rows) if rows else None
