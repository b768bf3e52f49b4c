"""Sections of changes by name: kernels, CUDA API, copies, input stages, host resources, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from traceviz.compare.changes.by_name import ApiChange, CopyChange
from traceviz.compare.changes.events import EventChange, Status
from traceviz.compare.changes.figures import FigureChange
from traceviz.compare.changes.findings import FindingChange, Seen
from traceviz.compare.changes.resources import DEVICES, amounts, over_time
from traceviz.compare.compare import Comparison, Pair, PathChange
from traceviz.compare.remark import in_capital
from traceviz.compare.report.change_table import Blocks, Cell, change_table, change_words, of_part
from traceviz.compare.report.whole_runs import measure_blocks, quality_blocks
from traceviz.compare.sides.capture_work import LANES, OPERATORS, OPS, PROGRAMS, RANGES, WorkKind
from traceviz.compare.sides.sides import Side
from traceviz.compare.work.settings import Changed
from traceviz.core.units import Value, format_value
from traceviz.report import Block, Column, Fact, Facts, Finding, Grid, Prose

BlocksOfPair = Callable[[Pair, str], Blocks]
"""Takes the pair, and the unit of its times as text (``per step, on average``)."""

_TIMES: tuple[Cell[EventChange], ...] = (
    (Column("base_ns", "Base", "ns", 1, additive=True), lambda change: change.base_ns or None),
    (Column("new_ns", "New", "ns", 1, additive=True), lambda change: change.new_ns or None),
    (
        Column("difference_ns", "Change", "ns", 0, bar=True, signed=True, better="lower", additive=True),
        lambda change: change.difference_ns,
    ),
    (Column("ratio", "Of base", "ratio", 3, signed=True, better="lower"), lambda change: change.ratio),
)
_STATUS: Cell[EventChange] = (Column("status", "Status", "text", 2), lambda change: change.status.value)
_CALLS: tuple[Cell[EventChange], ...] = (
    (Column("base_calls", "Calls, base", "number", 4, additive=True), lambda change: _number(change.base_calls)),
    (Column("new_calls", "Calls, new", "number", 4, additive=True), lambda change: _number(change.new_calls)),
)


_PER_CALL: tuple[Cell[EventChange], ...] = (
    (Column("base_call_ns", "Per call, base", "ns", 4), lambda change: _per_call(change.base_ns, change.base_calls)),
    (Column("new_call_ns", "Per call, new", "ns", 4), lambda change: _per_call(change.new_ns, change.new_calls)),
)


def _per_call(total_ns: int, calls: Fraction) -> Value:
    return float(total_ns / calls) if calls else None


def _number(exact: Fraction) -> Value:
    return exact.numerator if exact.denominator == 1 else float(exact)


def changed_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (compares whole runs)
    """List the changed settings: precision, memory, workers, graphs, tags."""
    if not pair.changed:
        return [Prose("The reports show no change of precision, memory, workers, graphs, compilers or tags.")], ""
    cells: tuple[Cell[Changed], ...] = (
        (Column("key", "Key", "text", 9), lambda change: change.key),
        (Column("label", "Changed", "text", 0), lambda change: change.label),
        (Column("base", "Base", "text", 0), lambda change: change.base),
        (Column("new", "New", "text", 0), lambda change: change.new),
    )
    return [change_table(cells, pair.changed, "as far as the reports show it", complete=True)], ""


def changed_by_side(comparison: Comparison) -> list[Block]:
    """List what was changed for each side: against the previous one of a path, else against the base."""
    changes = comparison.path or comparison.pairs
    rows = tuple(
        (after.label, before.label, changed.label, changed.base, changed.new)
        for change in changes
        for before, after in [
            (change.before, change.after) if isinstance(change, PathChange) else (change.base, change.new)
        ]
        for changed in change.changed
    )
    columns = (
        Column("side", "Side", "text", 0),
        Column("before", "Against", "text", 3),
        Column("label", "Changed", "text", 0),
        Column("base", "Before", "text", 0),
        Column("new", "Now", "text", 0),
    )
    return [Grid(columns, rows, "as far as the reports show it", complete=True)] if rows else []


def kernel_blocks(pair: Pair, per: str) -> Blocks:
    """List kernels with their changes, total kernel time, and counts of new, gone, faster and slower kernels."""
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
        return [Facts(facts), Prose(f"{in_capital(kernels.why_not)}.")], ""
    cells: tuple[Cell[EventChange], ...] = (
        _STATUS,
        (Column("name", "Kernel", "text", 0), lambda change: change.name),
        (Column("was", "Was", "text", 8), lambda change: change.was or None),
        (Column("family", "Family", "text", 5), lambda change: change.group),
        *_CALLS,
        *_PER_CALL,
        *_TIMES,
    )
    return [Facts((*facts, *counts)), change_table(cells, kernels.changes, per)], ""


def _capture_blocks(kind: WorkKind) -> BlocksOfPair:
    """Return the function that lists events of a kind by name, over whole captures."""

    def blocks(pair: Pair, per: str) -> Blocks:
        found = next((found for found in pair.captures if found.kind is kind), None)
        if found is None:
            return [], f"no {kind.events} are in both captures"
        name: Cell[EventChange] = (Column("name", kind.events.capitalize(), "text", 0), lambda change: change.name)
        words = f"{kind.words}, the largest change first" if kind.is_per_run else f"{kind.words}, {per}"
        table = change_table((_STATUS, name, *_CALLS, *_PER_CALL, *_TIMES), found.changes, words)
        return [table], ""

    return blocks


def api_blocks(pair: Pair, per: str) -> Blocks:
    """List shares of API time for functions that have 1 % on either side; for machines, all of them."""
    api = pair.api
    if api.why_not:
        return [], api.why_not
    steady: tuple[Cell[EventChange], ...] = (
        *_CALLS,
        (Column("base_ns", "Base", "ns", 3, additive=True), lambda change: change.base_ns or None),
        (Column("new_ns", "New", "ns", 3, additive=True), lambda change: change.new_ns or None),
        (
            Column("difference_ns", "Change", "ns", 2, signed=True, better="lower", additive=True),
            lambda change: change.difference_ns,
        ),
        (Column("ratio", "Of base", "ratio", 9, signed=True, better="lower"), lambda change: change.ratio),
    )
    in_steps: tuple[Cell[ApiChange], ...] = of_part(lambda change: change.steady, steady)
    cells: tuple[Cell[ApiChange], ...] = (
        (Column("name", "Function", "text", 0), lambda change: change.name),
        (Column("domain", "Domain", "text", 9), lambda change: change.domain),
        (Column("base_share", "Of API time, base", "ratio", 0, bar=True), lambda change: change.base_share),
        (Column("new_share", "Of API time, new", "ratio", 0, bar=True), lambda change: change.new_share),
        (
            Column("share_difference", "Points", "ratio", 9, signed=True),
            lambda change: change.new_share - change.base_share,
        ),
        *in_steps,
    )
    facts = (
        Fact("base_ns", "API time, base", api.base_ns, "ns"),
        Fact("new_ns", "API time, new", api.new_ns, "ns"),
    )
    totals: list[Block] = [] if api.base_ns is None else [Facts(facts)]
    notable = change_table(cells, api.notable, f"shares of the whole capture; calls and times {per}")
    machine = replace(change_table(cells, api.changes, "every function"), audience="machine")
    return [*totals, notable, machine], ""


def copy_blocks(pair: Pair, per: str) -> Blocks:
    """List copies and fills by kind, with bytes."""
    copies = pair.copies
    if copies.why_not:
        return [], copies.why_not
    of_times: tuple[Cell[CopyChange], ...] = of_part(lambda copy: copy.times, (_STATUS, *_CALLS, *_TIMES))
    status, base_calls, new_calls, *times = of_times
    cells: tuple[Cell[CopyChange], ...] = (
        status,
        (Column("kind", "Kind", "text", 0), lambda copy: copy.kind),
        base_calls,
        new_calls,
        (Column("base_bytes", "Bytes, base", "bytes", 2, additive=True), lambda copy: copy.base_bytes or None),
        (Column("new_bytes", "Bytes, new", "bytes", 2, additive=True), lambda copy: copy.new_bytes or None),
        *times,
    )
    return [change_table(cells, copies.changes, per)], ""


def stage_blocks(pair: Pair, per: str) -> Blocks:
    """List the time that steps waited in each stage."""
    stages = pair.stages
    if stages.why_not:
        return [], stages.why_not
    cells: tuple[Cell[EventChange], ...] = (
        _STATUS,
        (Column("stage", "Stage", "text", 0), lambda stage: stage.name),
        (Column("kind", "Evidence", "text", 4), lambda stage: stage.group),
        *_TIMES,
    )
    facts = (
        Fact("base_share", "input share of steps, base", stages.base_share, "ratio"),
        Fact("new_share", "input share of steps, new", stages.new_share, "ratio"),
    )
    return [Facts(facts), change_table(cells, stages.changes, f"wait for each stage, {per}")], ""


def device_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (compares whole captures)
    """Show use, efficiency and power of the devices, their busy time and idle time by cause, and use over time."""
    device = pair.device
    if device.why_not:
        return [], device.why_not
    blocks: list[Block] = [change_table(_FIGURES, device.figures, "mean over the devices and the runs")]
    if device.parts:
        cells: tuple[Cell[FigureChange], ...] = (
            (Column("cause", "Cause key", "text", 9), lambda part: part.key),
            (Column("label", "Devices", "text", 0), lambda part: part.label),
            (Column("base_share", "Base", "ratio", 0), lambda part: part.base),
            (Column("new_share", "New", "ratio", 0), lambda part: part.new),
            (
                Column("share_difference", "Points", "ratio", 1, signed=True),
                lambda part: (part.new or 0.0) - (part.base or 0.0),
            ),
        )
        title = "shares of the time from the first to the last work of the devices"
        blocks.append(change_table(cells, device.parts, title, complete=True))
    return [*blocks, *resources_by_side((pair.base, pair.new), DEVICES)], ""


def host_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (compares whole runs)
    """List CPU, memory and threads of the whole runs."""
    host = pair.host
    if host.why_not:
        return [], host.why_not
    machine = replace(change_table(_FIGURES, host.changes, "every figure"), audience="machine")
    return [change_table(_FIGURES, host.notable, "mean over the runs"), machine], ""


def resource_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (compares whole runs)
    """Draw CPU, memory, threads and GPUs of both sides on one axis."""
    blocks = resources_by_side((pair.base, pair.new))
    return (blocks, "") if blocks else ([], pair.host.why_not or "resources over time are not in both reports")


def resources_by_side(sides: Sequence[Side], slug: str = "host") -> list[Block]:
    """Return the picture and its full heights; nothing if fewer than two sides have any."""
    return [block for block in (over_time(sides, slug), amounts(sides, slug)) if block is not None]


_FIGURES: tuple[Cell[FigureChange], ...] = (
    (Column("metric", "Metric", "text", 0), lambda figure: figure.label),
    (Column("base", "Base", "text", 0), lambda figure: format_value(figure.base, figure.unit)),
    (Column("new", "New", "text", 0), lambda figure: format_value(figure.new, figure.unit)),
    (
        Column("change", "Change", "text", 0),
        lambda figure: change_words(figure.base, figure.new, figure.unit, figure.ratio),
    ),
    (Column("ratio", "Of base", "ratio", 9, signed=True), lambda figure: figure.ratio),
    (Column("key", "key", "text", 9), lambda figure: figure.key),
    (Column("unit", "unit", "text", 9), lambda figure: figure.unit),
    (Column("base_value", "base_value", "number", 9), lambda figure: figure.base),
    (Column("new_value", "new_value", "number", 9), lambda figure: figure.new),
)
"""Figures of different units, as text."""


def finding_blocks(pair: Pair, per: str) -> Blocks:
    """List findings that appeared, stayed or went away, with the share of time at stake."""
    cells: tuple[Cell[FindingChange], ...] = (
        (Column("seen", "Status", "text", 1), lambda change: change.seen.value),
        (Column("code", "Code", "text", 2), lambda change: change.code),
        (Column("name", "Finding", "text", 0), lambda change: change.slug),
        (Column("base_share", "Base", "ratio", 0), lambda change: _share_if_known(change.base, change.base_share)),
        (Column("new_share", "New", "ratio", 0), lambda change: _share_if_known(change.new, change.new_share)),
        (Column("base_ns", "Base time", "ns", 3, additive=True), lambda change: change.base_ns or None),
        (Column("new_ns", "New time", "ns", 3, additive=True), lambda change: change.new_ns or None),
        (Column("severity", "Severity", "text", 9), lambda change: change.severity.value),
        (Column("message", "Message", "text", 9), lambda change: change.message),
    )
    changes = pair.findings.changes
    appeared: Iterable[Block] = (
        Prose(f"Appeared: {change.code} {change.slug}: {change.message}")
        for change in changes
        if change.seen is Seen.APPEARED
    )
    return [change_table(cells, changes, f"share of the time at stake, and that time {per}"), *appeared], ""


def _share_if_known(finding: Finding | None, share: float | None) -> float | None:
    """Return the share of a finding; ``None`` if its cost is unknown or zero."""
    return None if finding is not None and finding.share is None else share or None


CHANGE_SECTIONS: tuple[tuple[str, str, BlocksOfPair], ...] = (
    ("measures", "The whole run in figures", measure_blocks),
    ("quality", "Quality", quality_blocks),
    ("changed", "What was changed", changed_blocks),
    (PROGRAMS.name, "Compiled programs", _capture_blocks(PROGRAMS)),
    ("kernels", "Kernels", kernel_blocks),
    (OPERATORS.name, "Operators", _capture_blocks(OPERATORS)),
    (OPS.name, "Framework ops", _capture_blocks(OPS)),
    (RANGES.name, "Ranges", _capture_blocks(RANGES)),
    (LANES.name, "Events", _capture_blocks(LANES)),
    ("cuda_api", "CUDA API", api_blocks),
    ("copies", "Copies", copy_blocks),
    ("input_pipeline", "Input pipeline", stage_blocks),
    ("device_use", "Device use", device_blocks),
    ("host", "Host resources", host_blocks),
    ("resources", "Resources over time", resource_blocks),
    ("findings", "Findings", finding_blocks),
)
"""Slug, title and blocks of every section of changes, in the order of the document."""
OF_CAPTURES = frozenset({PROGRAMS.name, OPERATORS.name, OPS.name, RANGES.name, LANES.name})
"""Sections that only comparisons of whole captures have, and of programs, whose runs are compared one by one."""
