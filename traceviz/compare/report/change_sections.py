"""Sections of what changed by name: kernels, CUDA API, copies, input stages, host resources, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from traceviz.compare.changes.events import EventChange, Status
from traceviz.compare.changes.figures import FigureChange
from traceviz.compare.changes.findings import Seen
from traceviz.compare.changes.resources import DEVICES, amounts, over_time
from traceviz.compare.compare import Pair
from traceviz.compare.report.measure_section import Blocks, measure_blocks
from traceviz.compare.report.quality_section import quality_blocks
from traceviz.compare.sides.sides import Side
from traceviz.core.units import Value, format_change, format_value
from traceviz.report import Block, Column, Fact, Facts, Finding, Grid, Prose, Row

BlocksOfPair = Callable[[Pair, str], Blocks]
"""Takes the pair, and the unit of its times in words (``per step, on average``)."""

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


def changed_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (of the whole runs, whatever a step is)
    """What was changed: precision, memory, workers, graphs, tags."""
    if not pair.changed:
        return [Prose("The reports show no change of precision, memory, workers, graphs, compilers or tags.")], ""
    columns = (
        Column("key", "Key", "text", 9),
        Column("label", "Changed", "text", 0),
        Column("base", "Base", "text", 0),
        Column("new", "New", "text", 0),
    )
    rows = tuple((change.key, change.label, change.base, change.new) for change in pair.changed)
    return [Grid(columns, rows, "as far as the reports show it", complete=True)], ""


def kernel_blocks(pair: Pair, per: str) -> Blocks:
    """Kernel time, how many kernels are new, gone, faster, slower, and each of them."""
    kernels = pair.kernels
    if kernels.base_ns is None:
        return [], kernels.why_not
    counts = (Fact(status.value, f"{status} kernels", len(kernels.of(status)), "count") for status in Status)
    facts = (
        Fact("base_ns", "kernel time, base", kernels.base_ns, "ns"),
        Fact("new_ns", "kernel time, new", kernels.new_ns, "ns"),
        Fact("common_share", "in kernels of both", kernels.common, "ratio"),
    )
    if kernels.why_not:
        return [Facts(facts), Prose(f"{kernels.why_not[:1].upper()}{kernels.why_not[1:]}.")], ""
    columns = (
        _STATUS,
        Column("name", "Kernel", "text", 0),
        Column("was", "Was", "text", 8),
        Column("family", "Family", "text", 5),
        *_CALLS,
        *_TIMES,
    )
    rows = tuple(
        (change.status.value, change.name, change.was or None, change.group, *_calls(change), *_times(change))
        for change in kernels.changes
    )
    return [Facts((*facts, *counts)), Grid(columns, rows, per)], ""


def api_blocks(pair: Pair, per: str) -> Blocks:
    """Shares of API time side by side, for functions that have 1 % on either side; for machines all of them."""
    api = pair.api
    if api.why_not:
        return [], api.why_not
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
    for change in api.changes:
        steady = (*_calls(change.steady), *_times(change.steady)) if change.steady else (None,) * 6
        shares = change.base_share, change.new_share, change.new_share - change.base_share
        every.append((change.name, change.domain, *shares, *steady))
    notable = tuple(row for row, change in zip(every, api.changes, strict=True) if change.is_notable)
    facts = (
        Fact("base_ns", "API time, base", api.base_ns, "ns"),
        Fact("new_ns", "API time, new", api.new_ns, "ns"),
    )
    totals: list[Block] = [] if api.base_ns is None else [Facts(facts)]
    title = f"shares of the whole capture; calls and times {per}"
    machine = Grid(columns, tuple(every), "every function", audience="machine")
    return [*totals, Grid(columns, notable, title), machine], ""


def copy_blocks(pair: Pair, per: str) -> Blocks:
    """Copies and fills by kind, with bytes."""
    copies = pair.copies
    if copies.why_not:
        return [], copies.why_not
    sizes = (Column("base_bytes", "Bytes, base", "bytes", 2), Column("new_bytes", "Bytes, new", "bytes", 2))
    columns = (_STATUS, Column("kind", "Kind", "text", 0), *_CALLS, *sizes, *_TIMES)
    rows = tuple(
        (copy.times.status.value, copy.kind, *_calls(copy.times), copy.base_bytes, copy.new_bytes, *_times(copy.times))
        for copy in copies.changes
    )
    return [Grid(columns, rows, per)], ""


def stage_blocks(pair: Pair, per: str) -> Blocks:
    """Time that steps waited in each stage."""
    stages = pair.stages
    if stages.why_not:
        return [], stages.why_not
    columns = (_STATUS, Column("stage", "Stage", "text", 0), Column("kind", "Evidence", "text", 4), *_TIMES)
    rows = tuple((stage.status.value, stage.name, stage.group, *_times(stage)) for stage in stages.changes)
    facts = (
        Fact("base_share", "input share of steps, base", stages.base_share, "ratio"),
        Fact("new_share", "input share of steps, new", stages.new_share, "ratio"),
    )
    return [Facts(facts), Grid(columns, rows, f"wait for each stage, {per}")], ""


def device_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (of the whole capture, whatever a step is)
    """Busy, efficiency and power of the devices; busy, and idle by cause, over the capture; both over time."""
    device = pair.device
    if device.why_not:
        return [], device.why_not
    blocks: list[Block] = [_figures(device.figures, "mean over the devices and the runs")]
    if device.parts:
        columns = (
            Column("cause", "Cause key", "text", 9),
            Column("label", "Devices", "text", 0),
            Column("base_share", "Base", "ratio", 0),
            Column("new_share", "New", "ratio", 0),
            Column("share_difference", "Points", "ratio", 1, signed=True),
        )
        rows = tuple((part.key, part.label, part.base, part.new, _difference(part)) for part in device.parts)
        blocks.append(
            Grid(columns, rows, "shares of the time from the first to the last work of the devices", complete=True)
        )
    return [*blocks, *_over_time((pair.base, pair.new), DEVICES)], ""


def _difference(part: FigureChange) -> float:
    return (part.new or 0.0) - (part.base or 0.0)


def host_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (of the whole run, whatever a step is)
    """CPU, memory, threads of the whole runs."""
    host = pair.host
    if host.why_not:
        return [], host.why_not
    machine = replace(_figures(host.changes, "every figure"), audience="machine")
    return [_figures(host.notable, "mean over the runs"), machine], ""


def resource_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (of the whole run, whatever a step is)
    """CPU, memory, threads, GPUs of both sides on one axis."""
    blocks = _over_time((pair.base, pair.new))
    return (blocks, "") if blocks else ([], pair.host.why_not or "resources over time are not in both reports")


def resources_by_side(sides: Sequence[Side]) -> list[Block]:
    """The same of all sides; nothing where fewer than two sampled any."""
    return _over_time(sides)


def _over_time(sides: Sequence[Side], slug: str = "host") -> list[Block]:
    """The picture, and what full height is in it; nothing where fewer than two sides have any."""
    return [block for block in (over_time(sides, slug), amounts(sides, slug)) if block is not None]


_FIGURE_COLUMNS = (
    Column("metric", "Metric", "text", 0),
    Column("base", "Base", "text", 0),
    Column("new", "New", "text", 0),
    Column("change", "Change", "text", 0),
    Column("ratio", "Of base", "ratio", 9, signed=True),
    *(Column(name, name, "text", 9) for name in ("key", "unit")),
    *(Column(name, name, "number", 9) for name in ("base_value", "new_value")),
)


def _figures(figures: Iterable[FigureChange], title: str) -> Grid:
    """Figures of different units, in words."""
    return Grid(_FIGURE_COLUMNS, tuple(map(_figure_row, figures)), title)


def _figure_row(figure: FigureChange) -> Row:
    """A figure. A share changes by points of percent: "+10 %" of 20 % reads as if it were 30 %."""
    change = format_change(figure.ratio, "ratio")
    if figure.unit == "ratio" and figure.base is not None and figure.new is not None:
        points = (figure.new - figure.base) * 100
        change = f"{format_change(round(points, 1), 'number')} points"
    shown = (format_value(value, figure.unit) for value in (figure.base, figure.new))
    return figure.label, *shown, change, figure.ratio, figure.key, figure.unit, figure.base, figure.new


def finding_blocks(pair: Pair, per: str) -> Blocks:
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
            *(change.seen.value, change.code, change.slug),
            *(_priced(change.base, change.base_share), _priced(change.new, change.new_share)),
            *(change.base_ns, change.new_ns),
            *(change.severity.value, change.message),
        )
        for change in changes
    )
    appeared: Iterable[Block] = (
        Prose(f"Appeared: {change.code} {change.slug}: {change.message}")
        for change in changes
        if change.seen is Seen.APPEARED
    )
    return [Grid(columns, rows, f"share of the time at stake, and that time {per}"), *appeared], ""


def _priced(finding: Finding | None, share: float | None) -> float | None:
    """Share of a finding; ``None`` where its cost is unknown."""
    return None if finding is not None and finding.share is None else share


CHANGE_SECTIONS: tuple[tuple[str, str, BlocksOfPair], ...] = (
    ("measures", "The whole run in figures", measure_blocks),
    ("quality", "Quality", quality_blocks),
    ("changed", "What was changed", changed_blocks),
    ("kernels", "Kernels", kernel_blocks),
    ("cuda_api", "CUDA API", api_blocks),
    ("copies", "Copies", copy_blocks),
    ("input_pipeline", "Input pipeline", stage_blocks),
    ("device_use", "Device use", device_blocks),
    ("host", "Host resources", host_blocks),
    ("resources", "Resources over time", resource_blocks),
    ("findings", "Findings", finding_blocks),
)
"""Slug, title and blocks of every section of changes, in the order of the document."""
