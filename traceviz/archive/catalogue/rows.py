"""Rows of the catalogue: the facts on each rank of a trace that are available without opening it.

A trace of several ranks has a row for each, with the figures of the report on that rank alone (``traceviz report
--rank``). Any other trace has one row, with the figures of its report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from traceviz.analyses.run import analyze
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.compare.sides.sides import steady_steps
from traceviz.core.errors import UsageError
from traceviz.gates.metrics import METRICS, Candidate, Metric
from traceviz.parsers.ranks.names import RANK_IN_NAME, rank_in_name
from traceviz.report import Finding, Report
from traceviz.report.findings.registry import find_record
from traceviz.trace.names.framework_signs import name_and_version
from traceviz.trace.rows_to_table import rows_to_table, stated_integer
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select
from traceviz.trace.tables import TraceTables

Row = dict[str, Any]

_LAUNCH_BOUND = "launch-bound-kernels"
_TAG = "tag."
_JOB_TAGS = ("job", "job_id")
"""Tags that name the job."""
_WORLD_SIZES = frozenset({"distributedinfo.world_size", "world_size", "worldsize"})
"""Settings that state the number of ranks in the job."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Facts on a trace that are known before it is read.

    Args:
        trace_id: Its id.
        sha256: SHA-256 of its source.
        size: Size of its source in bytes.
        name: Display name: a path from the source that the user named.
        source: The name without private parts.
        now_ns: Time of adding, Unix time in nanoseconds.
        version: Version of traceviz.
        tags: Tags that the user gave.
        job: Job that the user gave.
        found_job: Job stated by its location.
        owner: Mark that distinguishes jobs of different users; empty if the location states no user.
        private: True if private data is kept.
    """

    trace_id: str
    sha256: str
    size: int | None
    name: str
    source: str
    now_ns: int
    version: str
    tags: Mapping[str, str]
    job: str | None
    found_job: str = ""
    owner: str = ""
    private: bool = False


def quarantined_rows(origin: Origin, error: str) -> pa.Table:
    """Return the row of a trace that cannot be read."""
    return table_of(
        [{**_facts_of_origin(origin), "state": "quarantined", "error": error, **_tags_and_job(origin, {}, None)}]
    )


def ready_rows(
    origin: Origin, tables: TraceTables, report: Report, format_name: str, tags: Mapping[str, str]
) -> pa.Table:
    """Return a row for every rank of a trace.

    Args:
        origin: Origin of the trace.
        tables: Its tables.
        report: The report on the whole trace.
        format_name: Its format.
        tags: Tags stated by the recording.
    """
    ranks = stated_ranks(tables)
    reports = _by_rank(tables, report, ranks, origin.name)
    sizes = [stated_integer(value) for key, value in settings(tables) if key.lower() in _WORLD_SIZES]
    job = origin.found_job or _job(origin.name, ranks, next((size for size in sizes if size is not None), None))
    given = _tags_and_job(origin, tags, f"{job} ({origin.owner})" if job and origin.owner else job)
    rows = [
        {
            **_facts_of_origin(origin),
            "state": "ready",
            "format": format_name,
            "rank": rank,
            **given,
            **_of_run(part, part_report),
        }
        for rank, part, part_report in reports
    ]
    return table_of(rows)


def stated_tags(tables: TraceTables) -> dict[str, str]:
    """Return the tags of a run of ``traceviz collect``."""
    return {key.removeprefix(_TAG): value for key, value in settings(tables) if key.startswith(_TAG)}


def stated_ranks(tables: TraceTables) -> tuple[int, ...]:
    """Return the ranks that the trace itself states, in order."""
    ranks = tables.arrow("processes").column("rank").to_pylist()
    return tuple(sorted({rank for rank in ranks if rank is not None}))


def table_of(rows: list[Row]) -> pa.Table:
    """Convert catalogue rows to a table; missing values become null."""
    return rows_to_table("catalogue", rows, declared=CATALOGUE)


def with_times(rows: pa.Table, changed_ns: int, added_ns: int | None = None) -> pa.Table:
    """Return the rows with the write time ``changed_ns``, and with ``added_ns`` if it is given."""
    times = {"changed_ns": changed_ns, **({} if added_ns is None else {"added_ns": added_ns})}
    for name, time in times.items():
        values = pa.array([time] * len(rows), pa.int64())
        rows = rows.set_column(rows.schema.get_field_index(name), CATALOGUE.field(name), values)
    return rows


def tag_pairs(tags: Any) -> list[tuple[str, str]] | None:
    """Return the entries of a map as Arrow takes them. Polars gives a dict or structs, depending on its version."""
    if tags is None:
        return None
    return list(tags.items()) if isinstance(tags, dict) else [(entry["key"], entry["value"]) for entry in tags]


def _by_rank(
    tables: TraceTables, report: Report, ranks: tuple[int, ...], name: str
) -> Iterator[tuple[int | None, TraceTables, Report]]:
    if len(ranks) < 2:
        yield (ranks[0] if ranks else rank_in_name(name)), tables, report
        return
    for rank in ranks:
        part = select(tables, Selection(rank=rank))
        yield rank, part, analyze(part)


def _facts_of_origin(origin: Origin) -> Row:
    return {
        "trace_id": origin.trace_id,
        "source": origin.source,
        "source_sha256": origin.sha256,
        "source_bytes": origin.size,
        "added_ns": origin.now_ns,
        "changed_ns": origin.now_ns,
        "traceviz_version": origin.version,
        "private": origin.private,
    }


def _tags_and_job(origin: Origin, stated: Mapping[str, str], job: str | None) -> Row:
    """Return tags and job. Those of the user override those of the recording."""
    tags = {**stated, **origin.tags}
    named = next((tags[key] for key in _JOB_TAGS if key in tags), None)
    return {"tags": sorted(tags.items()), "job": origin.job or named or job}


def _job(name: str, ranks: tuple[int, ...], world_size: int | None) -> str | None:
    """Return the job stated by a trace's name, if the name has a rank or the trace is one of several ranks.

    It is the same for all ranks: ``job42`` for ``job42/rank3.json``, ``logs/big_rank*.json`` for
    ``logs/big_rank3.json``. A trace of several ranks is a job by itself.
    """
    if len(ranks) > 1:
        return name
    path = PurePosixPath(name)
    of_file = list(RANK_IN_NAME.finditer(path.name))
    if of_file and of_file[-1].start():
        last = of_file[-1]
        return str(path.with_name(f"{path.name[: last.start()]}rank*{path.name[last.end() :]}"))
    if of_file or (ranks and (world_size or 0) > 1):
        return str(path.parent) if path.parent.name else None
    of_folders = list(RANK_IN_NAME.finditer(name))
    return f"{name[: of_folders[-1].start()]}rank*{name[of_folders[-1].end() :]}" if of_folders else None


def settings(tables: TraceTables) -> list[tuple[str, str]]:
    """Return the settings of the trace as keys and values."""
    rows = tables.arrow("settings").select(["key", "value"]).to_pylist() if "settings" in tables else []
    return [(row["key"], row["value"]) for row in rows if row["value"] is not None]


def _of_run(tables: TraceTables, report: Report) -> Row:
    """Return the facts of the run, its devices and its report."""
    run = tables.run_facts()
    names = [device["name"] for device in tables.arrow("devices").to_pylist() if device["name"]]
    return {
        "producer": run.get("producer"),
        "producer_version": run.get("producer_version"),
        **dict(zip(("framework", "framework_version"), name_and_version(run.get("framework")), strict=True)),
        "gpu": ", ".join(dict.fromkeys(names)) or None,
        "devices": _fact(report, "capture", "devices"),
        "recorded_ns": run.get("t0_unix_ns"),
        "span_ns": run.get("span_ns") or None,
        "steps": steady_steps(report).size or None,
        "verdict": report.verdict.code.text,
        "sentence": report.verdict.sentence,
        "cause": report.verdict.cause or None,
        **{name: _figure(metric, report) for name, metric in _METRICS.items()},
        "launch_bound": _launch_bound(report),
        "exposed_api_ns": _fact(report, "cuda_api", "exposed_ns"),
        "findings": [_finding(finding, _fact(report, "ranks", "count") or 1) for finding in report.findings],
    }


def _finding(finding: Finding, ranks: int) -> Row:
    """Return a finding with the stake of one rank. In a trace of several ranks without numbers, this is the mean."""
    record = find_record(finding.code)
    summed_over = 1 if record is not None and record.is_per_rank else ranks
    return {
        "code": finding.code,
        "name": finding.slug,
        "severity": finding.severity.value,
        "share": finding.share,
        "stake_ns": round(finding.cost_ns / summed_over),
    }


_METRICS = {metric.name: metric for metric in METRICS if metric.name in CATALOGUE.names and metric.name != "findings"}


def _figure(metric: Metric, report: Report) -> float | int | None:
    """Read a metric that budgets use, as a whole number if the catalogue column is one; ``None`` if not measured."""
    try:
        value = metric.read(Candidate((report,))).value
    except UsageError:  # the fact exists, but is not a number
        return None
    is_whole = pa.types.is_integer(CATALOGUE.field(metric.name).type)
    return round(value) if value is not None and is_whole else value


def _fact(report: Report, slug: str, key: str) -> int | None:
    """Read a count or time of the report; ``None`` if the report does not state it."""
    try:
        value = report.fact(slug, key)
    except KeyError:
        return None
    return round(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _launch_bound(report: Report) -> float | None:
    """Return the share at stake by late launches: 0 if too small for a finding, ``None`` without kernels."""
    shares = [finding.share for finding in report.findings if finding.slug == _LAUNCH_BOUND]
    if shares:
        return shares[0]
    return 0.0 if any(section.slug == "kernels" for section in report.sections) else None
