"""Sections of what changed by name: kernels, CUDA API, copies, input stages, host resources, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from traceviz.compare.changes.events import EventChange, Status
from traceviz.compare.changes.findings import Seen
from traceviz.compare.changes.host import HostChange
from traceviz.compare.compare import Pair
from traceviz.report import Block, Column, Fact, Facts, Finding, Grid, Prose, Row
from traceviz.units import Value, format_change, format_value

Told = tuple[list[Block], str]
"""Blocks of a pair for people; and why there is nothing to compare, empty where there is."""
Teller = Callable[[Pair, str], Told]
"""Takes the pair, and what times are of (``per step, on average``)."""

_TIMES = (
    Column("base_ns", "Base", "ns", 1),
    Column("new_ns", "New", "ns", 1),
    Column("difference_ns", "Change", "ns", 0, bar=True, signed=True, better="lower"),
    Column("ratio", "Of base", "ratio", 3, signed=True, better="lower"),
)
_STATUS = Column("status", "Is", "text", 2)
_CALLS = (Column("base_calls", "Calls, base", "number", 4), Column("new_calls", "Calls, new", "number", 4))


def _times(change: EventChange) -> Row:
    return change.base_ns, change.new_ns, change.difference_ns, change.ratio


def _calls(change: EventChange) -> Row:
    return _number(change.base_calls), _number(change.new_calls)


def _number(exact: Fraction) -> Value:
    return exact.numerator if exact.denominator == 1 else float(exact)


def kernels(pair: Pair, per: str) -> Told:
    """Kernel time, how many kernels are new, gone, faster, slower, and each of them."""
    found = pair.kernels
    if found.base_ns is None:
        return [], found.why_not
    counts = (Fact(status.value, f"{status} kernels", len(found.of(status)), "count") for status in Status)
    facts = (
        Fact("base_ns", "kernel time, base", found.base_ns, "ns"),
        Fact("new_ns", "kernel time, new", found.new_ns, "ns"),
        Fact("common_share", "in kernels of both", found.common, "ratio"),
    )
    if found.why_not:
        return [Facts(facts), Prose(f"{found.why_not[:1].upper()}{found.why_not[1:]}.")], ""
    columns = (
        _STATUS,
        Column("name", "Kernel", "text", 0),
        Column("was", "Was", "text", 8),
        Column("family", "Family", "text", 5),
        *_CALLS,
        *_TIMES,
    )
    rows = tuple(
        (one.status.value, one.name, one.was or None, one.group, *_calls(one), *_times(one)) for one in found.changes
    )
    return [Facts((*facts, *counts)), Grid(columns, rows, per)], ""


def cuda_api(pair: Pair, per: str) -> Told:
    """Shares of API time side by side, for functions that have 1 % on either side; for machines all of them."""
    found = pair.api
    if found.why_not:
        return [], found.why_not
    columns = (
        Column("name", "Function", "text", 0),
        Column("domain", "Domain", "text", 9),
        Column("base_share", "Of API time, base", "ratio", 0, bar=True),
        Column("new_share", "Of API time, new", "ratio", 0, bar=True),
        Column("share_difference", "Points", "ratio", 9, signed=True),
        *_CALLS,
        Column("base_ns", "Base", "ns", 3),
        Column("new_ns", "New", "ns", 3),
        Column("difference_ns", "Change", "ns", 2, signed=True, better="lower"),
        Column("ratio", "Of base", "ratio", 9, signed=True, better="lower"),
    )
    every: list[Row] = []
    for one in found.changes:
        steady = (*_calls(one.steady), *_times(one.steady)) if one.steady else (None,) * 6
        shares = one.base_share, one.new_share, one.new_share - one.base_share
        every.append((one.name, one.domain, *shares, *steady))
    notable = tuple(row for row, one in zip(every, found.changes, strict=True) if one.is_notable)
    facts = (
        Fact("base_ns", "API time, base", found.base_ns, "ns"),
        Fact("new_ns", "API time, new", found.new_ns, "ns"),
    )
    told: list[Block] = [] if found.base_ns is None else [Facts(facts)]
    title = f"shares of the whole capture; calls and times {per}"
    machine = Grid(columns, tuple(every), "every function", audience="machine")
    return [*told, Grid(columns, notable, title), machine], ""


def copies(pair: Pair, per: str) -> Told:
    """Copies and fills by kind, with bytes."""
    found = pair.copies
    if found.why_not:
        return [], found.why_not
    sizes = (Column("base_bytes", "Bytes, base", "bytes", 2), Column("new_bytes", "Bytes, new", "bytes", 2))
    columns = (_STATUS, Column("kind", "Kind", "text", 0), *_CALLS, *sizes, *_TIMES)
    rows = tuple(
        (one.times.status.value, one.kind, *_calls(one.times), one.base_bytes, one.new_bytes, *_times(one.times))
        for one in found.changes
    )
    return [Grid(columns, rows, per)], ""


def input_pipeline(pair: Pair, per: str) -> Told:
    """Time that steps waited in each stage."""
    found = pair.stages
    if found.why_not:
        return [], found.why_not
    columns = (_STATUS, Column("stage", "Stage", "text", 0), Column("kind", "Evidence", "text", 4), *_TIMES)
    rows = tuple((one.status.value, one.name, one.group, *_times(one)) for one in found.changes)
    facts = (
        Fact("base_share", "input share of steps, base", found.base_share, "ratio"),
        Fact("new_share", "input share of steps, new", found.new_share, "ratio"),
    )
    return [Facts(facts), Grid(columns, rows, f"wait for each stage, {per}")], ""


def host(pair: Pair, per: str) -> Told:  # noqa: ARG001 (of the whole run, whatever a step is)
    """CPU, memory, threads of the whole runs."""
    found = pair.host
    if found.why_not:
        return [], found.why_not
    columns = (
        Column("metric", "Metric", "text", 0),
        Column("base", "Base", "text", 0),
        Column("new", "New", "text", 0),
        Column("change", "Change", "text", 0),
        Column("ratio", "Of base", "ratio", 9, signed=True),
        *(Column(name, name, "text", 9) for name in ("key", "unit")),
        *(Column(name, name, "number", 9) for name in ("base_value", "new_value")),
    )
    notable, every = (tuple(map(_host_row, changes)) for changes in (found.notable, found.changes))
    machine = Grid(columns, every, "every figure", audience="machine")
    return [Grid(columns, notable, "mean over the runs"), machine], ""


def _host_row(one: HostChange) -> Row:
    """The change of a share is in points of it: a tenth more of 20 % reads as if it were 30 %."""
    change = format_change(one.ratio, "ratio")
    if one.unit == "ratio" and one.base is not None and one.new is not None:
        points = (one.new - one.base) * 100
        change = f"{format_change(round(points, 1), 'number')} points"
    shown = (format_value(value, one.unit) for value in (one.base, one.new))
    return one.label, *shown, change, one.ratio, one.key, one.unit, one.base, one.new


def findings(pair: Pair, per: str) -> Told:
    """Findings that appeared, stayed or went away, with the share of time at stake."""
    columns = (
        Column("seen", "Finding", "text", 1),
        Column("code", "Code", "text", 2),
        Column("name", "Name", "text", 0),
        Column("base_share", "Base", "ratio", 0),
        Column("new_share", "New", "ratio", 0),
        Column("base_ns", "Base time", "ns", 3),
        Column("new_ns", "New time", "ns", 3),
        Column("severity", "Severity", "text", 9),
        Column("message", "Message", "text", 9),
    )
    changes = pair.findings.changes
    rows = tuple(
        (
            *(one.seen.value, one.code, one.slug),
            *(_priced(one.base, one.base_share), _priced(one.new, one.new_share), one.base_ns, one.new_ns),
            *(one.severity.value, one.message),
        )
        for one in changes
    )
    appeared: Iterable[Block] = (
        Prose(f"Appeared: {one.code} {one.slug}: {one.message}") for one in changes if one.seen is Seen.APPEARED
    )
    return [Grid(columns, rows, f"share of the time at stake, and that time {per}"), *appeared], ""


def _priced(finding: Finding | None, share: float | None) -> float | None:
    """Its share; ``None`` for a finding whose cost nobody can tell."""
    return None if finding is not None and finding.share is None else share


TELLERS: tuple[tuple[str, str, Teller], ...] = (
    ("kernels", "Kernels", kernels),
    ("cuda_api", "CUDA API", cuda_api),
    ("copies", "Copies", copies),
    ("input_pipeline", "Input pipeline", input_pipeline),
    ("host", "Host resources", host),
    ("findings", "Findings", findings),
)
"""Slug, title and teller of every section of changes, in the order of the document."""
