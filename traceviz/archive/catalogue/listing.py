"""Documents on the traces of an archive: a table of the catalogue, and the saved report of one trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

import polars as pl

from traceviz.archive.catalogue.columns import COLUMNS
from traceviz.archive.catalogue.rows import tag_pairs
from traceviz.archive.storage.layout import REPORT, trace_parts
from traceviz.archive.storage.store import Store
from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.core.units import Unit, Value
from traceviz.render import json as saved
from traceviz.report import LISTING, Column, Fact, Grid, Prose, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode

DEFAULT_COLUMNS = (
    *("trace_id", "rank", "source", "format", "framework", "job", "recorded"),
    *("step_median", "input_share", "device_busy", "verdict"),
)
ERROR_COLUMNS = ("trace_id", "source", "error")
"""Columns of traces that cannot be read."""

_IMPORTANCE = {"trace_id": 0, "source": 0, "verdict": 0, "step_median": 1, "input_share": 1, "error": 0, "rank": 2}
_LABELS = {
    "trace_id": "Trace",
    "recorded": "Recorded (UTC)",
    "added": "Added (UTC)",
    "gpu": "GPU",
    "span_ns": "Span",
    "step_median": "Step median",
    "step_p95": "Step p95",
    "exposed_api_ns": "Exposed API",
    "epoch_time": "Epoch",
    "first_epoch_time": "First epoch",
    "host_cpu": "Host CPU",
    "host_rss": "Host memory",
    "source_sha256": "SHA-256",
}
_DATES = {"recorded": "recorded_ns", "added": "added_ns"}
"""Date columns of the listing, with the catalogue columns they are computed from."""
_WHOLE = frozenset({"trace_id", "verdict"})
"""Columns of ids and of short fixed texts. A shortened value would be useless."""
_MOMENTS = frozenset({"recorded_ns", "added_ns", "changed_ns"})
"""Points in time: nanoseconds since 1970, not durations."""
_UNITS: frozenset[str] = frozenset(get_args(Unit))


def listing(
    store: Store, rows: pl.DataFrame, columns: Sequence[str] = (), sort: Sequence[str] = (), limit: int | None = None
) -> Report:
    """Return a table of traces with one row per rank. Unreadable traces are in a separate table.

    Args:
        store: The archive; only its name is used.
        rows: Rows of the catalogue to show.
        columns: Columns to show; by default :data:`DEFAULT_COLUMNS`.
        sort: Columns to sort by, the most important first; ``-`` before a name sorts the largest first. Unknown values
            are last. By default the newest recording is first.
        limit: Maximum number of rows.

    Raises:
        UsageError: there is no such column.
    """
    ready = _sort(rows.filter(pl.col("state") == "ready"), sort)
    bad = rows.filter(pl.col("state") == "quarantined").sort("source", "trace_id")
    shown = ready if limit is None else ready.head(limit)
    sections = [Section("traces", "Traces", (_grid(shown, columns or DEFAULT_COLUMNS),))] if ready.height else []
    if bad.height:
        # As sentences, which are too long for a column, and as a table.
        reasons = (Prose(f"{row['source']} ({row['trace_id']}): {row['error']}") for row in bad.iter_rows(named=True))
        table = replace(_grid(bad, ERROR_COLUMNS), audience="machine")
        sections.append(Section("quarantined", "Quarantined: not read", (*reasons, table)))
    return Report(
        run=(
            Fact("source", "archive", store.called().rstrip("/").rpartition("/")[2] or store.called()),
            Fact("traces", "traces", ready["trace_id"].n_unique(), "count"),
            Fact("quarantined", "quarantined", bad["trace_id"].n_unique(), "count"),
        ),
        verdict=Verdict(VerdictCode.ARCHIVE, _sentence(ready, bad, shown.height)),
        sections=tuple(sections),
        schema=LISTING,
    )


def saved_report(store: Store, row: dict[str, Any]) -> Report:
    """Return the report of a trace that was saved when it was added, with the id next to the source.

    Args:
        store: The archive.
        row: A row of the catalogue.

    Raises:
        DamagedTraceError: the trace could not be read, or its report is missing.
    """
    if row["state"] != "ready":
        raise DamagedTraceError(
            f"{row['source']} ({row['trace_id']}) could not be read when it was added.", str(row["error"])
        )
    try:
        text = store.read(*trace_parts(row["format"], row["trace_id"]), REPORT)
        report = saved.loads(text.decode("utf-8"))
    except (FileNotFoundError, UnicodeDecodeError, DamagedTraceError) as error:
        raise DamagedTraceError(
            f"The report of {row['trace_id']} cannot be read.",
            str(error),
            "Repair it: traceviz archive verify --repair ARCHIVE, and add its source again.",
        ) from error
    facts = (
        replace(fact, value=f"{fact.value} ({row['trace_id']})") if fact.key == "source" else fact
        for fact in report.run
    )
    return replace(report, run=tuple(facts))


def _sort(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    bare = [name.removeprefix("-") for name in names]
    _check(bare)
    if not names:  # The newest recording comes first; ranks of a job stay together.
        order = ("recorded_ns", "job", "rank", "source")
        return rows.sort(*order, descending=[True, False, False, False], nulls_last=True)
    bare = [_DATES.get(name, name) for name in bare]
    descending = [name.startswith("-") for name in names]
    return rows.sort(bare, descending=descending, nulls_last=True, maintain_order=True)


def _check(names: Sequence[str]) -> None:
    """Raise if the catalogue has no such column.

    Raises:
        UsageError: a column does not exist.
    """
    known = [*(column.name for column in COLUMNS), *_DATES]
    for name in names:
        if name not in known:
            raise UsageError.unknown("column", name, known)


def _grid(rows: pl.DataFrame, names: Sequence[str]) -> Grid:
    _check(names)
    columns = tuple(_column(name) for name in dict.fromkeys(names))
    lists = [[_show(name, value) for value in rows[_DATES.get(name, name)].to_list()] for name in dict.fromkeys(names)]
    return Grid(columns, tuple(zip(*lists, strict=True)), complete=True)


def _column(name: str) -> Column:
    declared = next(column for column in COLUMNS if column.name == _DATES.get(name, name))
    unit: Any = declared.unit if declared.unit in _UNITS else "text"
    if name in _DATES:
        unit = "text"
    elif name == "rank" or name in _MOMENTS:
        unit = "id"
    label = _LABELS.get(name, name.replace("_", " ").capitalize())
    return Column(name, label, unit, _IMPORTANCE.get(name, 3), shorten=name not in _WHOLE)


def _show(name: str, value: Any) -> Value:
    """Convert a value of the catalogue for a document: dates, lists and maps become text."""
    if value is None:
        return None
    if name in _DATES:
        return datetime.fromtimestamp(value // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    if name == "tags":
        return ", ".join(f"{key}={tag_value}" for key, tag_value in tag_pairs(value) or ()) or None
    if name == "findings":
        return ", ".join(finding["name"] for finding in value) or None
    if isinstance(value, float) and value != value:  # noqa: PLR0124 (not a number)
        return None
    shown: Value = value
    return shown


def _sentence(ready: pl.DataFrame, bad: pl.DataFrame, shown: int) -> str:
    count = ready["trace_id"].n_unique()
    parts = [f"{count:,} trace{'s' * (count != 1)}"]
    if ready.height != count:
        parts.append(f"{ready.height:,} ranks")
    if bad.height:
        parts.append(f"{bad['trace_id'].n_unique():,} more could not be read")
    more = f" The first {shown:,} rows are shown." if shown < ready.height else ""
    return f"{', '.join(parts)}.{more}"
