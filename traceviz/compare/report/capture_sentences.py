"""Sentences on what changed where steps cannot be judged: work by name, idle time, streams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from traceviz.compare.attribution import ClassChange
from traceviz.compare.changes.captures import are_as_often, compare_captures, largest, short_name
from traceviz.compare.changes.events import EventChange
from traceviz.compare.compare import Pair
from traceviz.compare.effect import Outcome
from traceviz.compare.remark import in_capital
from traceviz.compare.report.change_table import from_to
from traceviz.compare.sides.basis import Basis
from traceviz.compare.sides.capture_work import KERNELS, PROGRAMS, WorkKind, device_time
from traceviz.compare.sides.sides import Side, fact, rows, whole
from traceviz.compare.work.parameters import are_same_layers
from traceviz.core.units import format_change, format_ns

_SHARED = 0.5
"""Share of the communication on streams of the computing from which both cannot overlap."""
_NUMBERS = re.compile(r"(?:, \w+ = N)+$")
"""Running numbers at the end of a range: ``aten::mul, seq = N, op_id = N``."""
_IDLE = 0.01
"""Change of the idle time of devices that is named, as share of the time from their first to their last work."""
_CLOSE = 0.1
"""Largest difference between the change of a kernel and that of the range that has it, as share of the former."""


def describe_captures(pair: Pair, basis: Basis) -> str:
    """Return what changed between two captures without steps: `` kernel_a 31.6 ms less (272 → 241 ms).``."""
    kind = basis.work
    if kind is None:
        return ""
    found = compare_captures(pair.base, pair.new, kind)
    parts = [_describe_total(pair, basis)] if pair.judgement.effect is None else []
    if found.changes and pair.judgement.outcome is not Outcome.NO_CHANGE:
        parts.append(_describe_events(pair, found.changes, kind))
    parts += [_describe_idle(pair), describe_streams(pair)]
    return "".join(f" {part}." for part in parts if part)


def _describe_total(pair: Pair, basis: Basis) -> str:
    before, after = basis.typical_ns(pair.base), basis.typical_ns(pair.new)
    if not before or not after:
        return ""
    change = format_change(after / before - 1, "ratio")
    return f"{in_capital(basis.words)} {from_to(before, after)} ({change})"


def _describe_events(pair: Pair, changes: Sequence[EventChange], kind: WorkKind) -> str:
    """Return the largest changes by name; per call as well, if a side calls the event more often."""
    named = largest(changes)
    return "; ".join(f"{_describe(pair, change)}{_in_range(pair, change, kind)}" for change in named)


def _describe(pair: Pair, change: EventChange) -> str:
    """Return ``gemm 31.6 ms less (272 → 241 ms; per call 4.00 → 4.01 ms, +0.3 %)``."""
    more = f"{format_ns(abs(change.difference_ns))} {'more' if change.difference_ns > 0 else 'less'}"
    if not change.base_calls or not change.new_calls:
        return f"{short_name(change.name)} {more} (only in {(pair.new if change.new_calls else pair.base).label})"
    times = from_to(change.base_ns, change.new_ns)
    if are_as_often(change) and change.base_calls == change.new_calls:
        return f"{short_name(change.name)} {more} ({times})"
    base, new = float(change.base_ns / change.base_calls), float(change.new_ns / change.new_calls)
    ratio = f", {format_change(new / base - 1, 'ratio')}" if base else ""
    return f"{short_name(change.name)} {more} ({times}; per call {from_to(base, new)}{ratio})"


def _in_range(pair: Pair, change: EventChange, kind: WorkKind) -> str:
    """Return the innermost range or operator whose device time changed as much; nothing without one."""
    if kind is not KERNELS:
        return ""
    for source in ("ranges", "operators"):
        before, after = (device_time(side, source) for side in (pair.base, pair.new))
        close = [
            name
            for name in before.keys() & after.keys()
            if abs(float(after[name] - before[name]) - change.difference_ns) <= _CLOSE * abs(change.difference_ns)
        ]
        if close:
            return f" in {_NUMBERS.sub('', min(close, key=lambda name: (before[name], name)))}"
    return ""


def _describe_idle(pair: Pair) -> str:
    """Return ``devices are idle 46.0 ms more (58.4 → 104 ms)``, between their first and last work, and that time."""
    (before, extent), (after, new_extent) = (_idle(side) for side in (pair.base, pair.new))
    if not extent or not new_extent or abs(after - before) < _IDLE * extent:
        return ""
    more = f"{format_ns(abs(after - before))} {'more' if after > before else 'less'}"
    whole_time = f"from their first to their last work {from_to(extent, new_extent)}"
    return f"Devices are idle {more} ({from_to(before, after)}), {whole_time} summed over devices"


def _idle(side: Side) -> tuple[float, float]:
    """Return idle time of the devices between first and last work, and that time, per run of the side."""
    idle = extent = 0
    for report in side.reports:
        for row in rows(next(report.grids("device_use"), None)):
            idle += whole(row.get("inner_idle_ns"))
            extent += whole(row.get("extent_ns"))
    return idle / max(len(side.reports), 1), extent / max(len(side.reports), 1)


def describe_streams(pair: Pair) -> str:
    """Return that communication and compute share a stream, and the sides for which this is known."""
    shared = [side.label for side in (pair.base, pair.new) if _shares_stream(side)]
    if not shared:
        return ""
    where = "on both sides" if len(shared) == 2 else f"in {shared[0]}"
    return f"Communication and compute share a stream {where}, so they cannot overlap"


def _shares_stream(side: Side) -> bool:
    shares = [fact(report, "communication", "shared_share") for report in side.reports]
    return bool(shares) and all(isinstance(share, float | int) and share >= _SHARED for share in shares)


def describe_few_steps(pair: Pair) -> str:
    """Return what changed in steps that are too few to judge: classes, and kernel time if the work is the same."""
    kernels, judgement = pair.kernels, pair.judgement
    is_few = judgement.outcome is Outcome.UNKNOWN and judgement.effect is None and judgement.basis.is_step
    if not is_few or not kernels.base_ns or not kernels.new_ns or any(one.forbids == "verdict" for one in pair.remarks):
        return ""
    text = _describe_program(pair)
    if not text:
        ratio = format_change(kernels.new_ns / kernels.base_ns - 1, "ratio")
        same = ", for the same layers and inputs" * are_same_layers(pair.base, pair.new)
        text = f" Kernel time per step {from_to(kernels.base_ns, kernels.new_ns)} ({ratio}){same}."
    if pair.attribution is not None:
        classes = "; ".join(_describe_classes(pair))
        text += (
            f" Mean step {from_to(pair.attribution.base_ns, pair.attribution.new_ns)}{f': {classes}' * bool(classes)}."
        )
    streams = describe_streams(pair)
    return f"{text} {streams}." if streams else text


def _describe_program(pair: Pair) -> str:
    """Return `` jit_step 67.2 → 65.7 ms per run (−2.2 %).`` for the program with the most time."""
    changes = next((found.changes for found in pair.captures if found.kind is PROGRAMS), ())
    main = max(changes, key=lambda change: change.base_ns, default=None)
    if main is None or not main.base_calls or not main.new_calls or not main.base_ns:
        return ""
    base, new = float(main.base_ns / main.base_calls), float(main.new_ns / main.new_calls)
    return f" {main.name} {from_to(base, new)} per run ({format_change(new / base - 1, 'ratio')})."


def _describe_classes(pair: Pair) -> Iterator[str]:
    """Yield the two classes of step time that changed most."""
    assert pair.attribution is not None
    changes: list[ClassChange] = sorted(pair.attribution.classes, key=lambda change: -abs(change.difference_ns))
    for change in changes[:2]:
        if abs(change.difference_ns) >= _IDLE * pair.attribution.base_ns:
            label = next(
                side.class_labels[change.key] for side in (pair.base, pair.new) if change.key in side.class_labels
            )
            yield f"{label} {from_to(change.base_ns, change.new_ns)}"
