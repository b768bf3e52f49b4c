"""Sentences on what changed where steps cannot be judged: work by name, idle time, streams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from traceviz.compare.attribution import ClassChange
from traceviz.compare.changes.captures import CaptureChanges, calls_words, compare_captures, largest
from traceviz.compare.changes.events import EventChange
from traceviz.compare.compare import Pair
from traceviz.compare.effect import Outcome
from traceviz.compare.remark import DEVICE, in_capital
from traceviz.compare.report.change_table import FAR, from_to
from traceviz.compare.sides.basis import Basis
from traceviz.compare.sides.capture_work import KERNELS, PROGRAMS, RANGES, WorkKind, device_time
from traceviz.compare.sides.sides import Side, fact, grid, rows, whole
from traceviz.compare.work.parameters import are_same_layers
from traceviz.compare.work.remarks import OTHER_WORK
from traceviz.core.units import format_change, format_ns, format_ratio, format_value

_SHARED = 0.5
"""Share of the communication on streams of the computing from which both cannot overlap."""
_NUMBERS = re.compile(r"(?:, \w+ = N)+$")
"""Running numbers at the end of a range: ``aten::mul, seq = N, op_id = N``."""
_IDLE = 0.01
"""Change of the idle time of devices that is named, as share of the time from their first to their last work."""
_CLOSE = 0.1
"""Largest difference between the change of a kernel and that of the range that has it, as share of the former."""


def describe_changes(pair: Pair, basis: Basis) -> str:
    """Return what changed where nothing is judged: `` Mean step 10.0 → 12.0 ms (+20.0 %): ...``; empty if unknown."""
    if basis.is_step and pair.base.steps and pair.new.steps:
        return _describe_steps(pair)
    return describe_captures(pair, basis)


def describe_captures(pair: Pair, basis: Basis) -> str:
    """Return what changed between two captures without steps: `` kernel_a 31.6 ms less (272 → 241 ms).``."""
    kind = basis.work or (RANGES if basis.is_step else None)
    if kind is None:
        return ""
    found = compare_captures(pair.base, pair.new, kind)
    is_judged = pair.judgement.outcome is not Outcome.UNKNOWN
    total = "" if is_judged or basis.work is None else _describe_total(pair, basis)
    events = "" if pair.judgement.outcome is Outcome.NO_CHANGE else _describe_events(pair, found.by_short_name, kind)
    first = f"{total}: {events}" if total and events else total or events
    parts = [first, _describe_copies(pair), _describe_idle(pair), describe_streams(pair)]
    return "".join(f" {part}." for part in parts if part)


def _describe_total(pair: Pair, basis: Basis) -> str:
    before, after = basis.typical_ns(pair.base), basis.typical_ns(pair.new)
    if not before or not after:
        return ""
    return f"{in_capital(basis.words)} {from_to(before, after)} ({_by(before, after)}){_caveat(pair)}"


def _caveat(pair: Pair) -> str:
    """Return why a change says little: ``, for different work``, ``, which may be chance``."""
    if any(remark.code in OTHER_WORK and remark.forbids for remark in pair.remarks):
        return ", for different work"
    return ", which may be chance" if pair.judgement.effect is not None else ""


def _by(base: float, new: float) -> str:
    """Return a change in percent; a change beyond tenfold as a factor."""
    factor = new / base
    return format_change(factor - 1, "ratio") if factor <= FAR else f"{format_value(factor, 'factor')}"


def _describe_events(pair: Pair, changes: Sequence[EventChange], kind: WorkKind) -> str:
    """Return the largest changes by name; per call as well, if a side calls the event more often."""
    named = largest(changes)
    return "; ".join(f"{_describe(pair, change)}{_in_range(pair, change, kind)}" for change in named)


def _describe(pair: Pair, change: EventChange) -> str:
    """Return ``gemm 31.6 ms less (272 → 241 ms; 68 → 60 calls, each 4.00 → 4.01 ms, +0.2 %)``."""
    more = f"{format_ns(abs(change.difference_ns))} {'more' if change.difference_ns > 0 else 'less'}"
    if not change.base_calls or not change.new_calls:
        return f"{change.name} {more} (only in {(pair.new if change.new_calls else pair.base).label})"
    times = from_to(change.base_ns, change.new_ns)
    if change.base_calls == change.new_calls:
        return f"{change.name} {more} ({times})"
    base, new = float(change.base_ns / change.base_calls), float(change.new_ns / change.new_calls)
    each = f", each {from_to(base, new)}, {_by(base, new)}" if base else ""
    return f"{change.name} {more} ({times}; {calls_words(change.base_calls, change.new_calls)} calls{each})"


def _describe_copies(pair: Pair) -> str:
    """Return the kind of copies that changed most, if that is worth naming next to kernels: with calls and bytes."""
    least = _MATTERS * max(pair.kernels.base_ns or 0, pair.kernels.new_ns or 0)
    change = max(pair.copies.changes, key=lambda one: abs(one.times.difference_ns), default=None)
    if change is None or not least or abs(change.times.difference_ns) < least:
        return ""
    sizes = [format_value(size, "bytes") for size in (change.base_bytes, change.new_bytes)]
    moved = sizes[0] if sizes[0] == sizes[1] else " → ".join(sizes)
    more = f"{format_ns(abs(change.times.difference_ns))} {'more' if change.times.difference_ns > 0 else 'less'}"
    label = _COPIES.get(change.kind, change.kind)
    return f"{label} {more} ({from_to(change.times.base_ns, change.times.new_ns)}, {moved})"


_COPIES = {
    "h2d": "Copies to the device",
    "d2h": "Copies to the host",
    "d2d": "Copies within the device",
    "memset": "Fills",
    "p2p": "Copies between devices",
}
"""Kinds of copies as text."""
_MATTERS = 0.05
"""Change of copies that is named, as share of kernel time."""


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
    """Return ``Devices are idle for 9.6 → 17.4 % of the time from their first to their last work``."""
    (before, extent), (after, new_extent) = (_idle(side) for side in (pair.base, pair.new))
    if not extent or not new_extent or abs(after / new_extent - before / extent) < _IDLE:
        return ""
    base, new = (format_ratio(share) for share in (before / extent, after / new_extent))
    shares = f"{base.removesuffix(' %')} → {new}"
    times = f"{format_ns(before)} of {format_ns(extent)} → {format_ns(after)} of {format_ns(new_extent)}"
    several = ", summed over devices" * any(_devices(side) > 1 for side in (pair.base, pair.new))
    return f"Devices are idle for {shares} of the time from their first to their last work ({times}{several})"


def _devices(side: Side) -> int:
    return max((len(rows(next(report.grids("device_use"), None))) for report in side.reports), default=0)


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


def _describe_steps(pair: Pair) -> str:
    """Return what changed in steps that are not judged: classes, and kernel time or a run of a program."""
    parts = [_describe_program(pair) or _describe_kernels(pair)]
    before, after = pair.base.mean_ns, pair.new.mean_ns
    if before and after:
        classes = "; ".join(_describe_classes(pair))
        step = f"Mean step {from_to(before, after)} ({_by(before, after)}){_caveat(pair)}"
        parts.append(f"{step}: {classes}" if classes else step)
    if not _caveat(pair) and parts[0]:
        return "".join(f" {part}." for part in (*parts, describe_streams(pair)) if part)
    return "".join(f" {part}." for part in (*parts[::-1], describe_streams(pair)) if part)


def _describe_kernels(pair: Pair) -> str:
    """Return the kernel time per step, if both sides have some."""
    kernels = pair.kernels
    if not kernels.base_ns or not kernels.new_ns:
        return ""
    same = ", for the same layers and inputs" * are_same_layers(pair.base, pair.new)
    return f"Kernel time per step {from_to(kernels.base_ns, kernels.new_ns)} ({_by(kernels.base_ns, kernels.new_ns)}){same}"


def _describe_program(pair: Pair) -> str:
    """Return ``jit_step 67.2 → 65.7 ms per run (−2.2 %)`` for the program with the most time."""
    changes = next((found.changes for found in pair.captures if found.kind is PROGRAMS), ())
    main = max(changes, key=lambda change: change.base_ns, default=None)
    if main is None or not main.base_calls or not main.new_calls or not main.base_ns:
        return ""
    base, new = float(main.base_ns / main.base_calls), float(main.new_ns / main.new_calls)
    return f"{main.name} {from_to(base, new)} per run ({_by(base, new)})"


def _describe_classes(pair: Pair) -> Iterator[str]:
    """Yield the two classes of step time that changed most; the first with what changed most within it."""
    if pair.attribution is None:
        return
    changes: list[ClassChange] = sorted(pair.attribution.classes, key=lambda change: -abs(change.difference_ns))
    for place, change in enumerate(changes[:2]):
        if abs(change.difference_ns) >= _IDLE * pair.attribution.base_ns:
            label = next(
                side.class_labels[change.key] for side in (pair.base, pair.new) if change.key in side.class_labels
            )
            within = "" if place else name_within(pair, change)
            yield f"{label} {from_to(change.base_ns, change.new_ns)}{within}"


def name_within(pair: Pair, change: ClassChange) -> str:
    """Return what changed most within a class of step time: ``, most of all gemm (1.00 → 3.00 ms)``."""
    if change.key == DEVICE:
        events = [
            (one.name, float(one.base_ns), float(one.new_ns))
            for one in CaptureChanges(KERNELS, pair.kernels.changes).by_short_name
        ]
    elif change.key in _OF_HOST:
        before, after = (_host_times(side) for side in (pair.base, pair.new))
        if not before or not after:
            return ""
        events = [(name, before.get(name, 0.0), after.get(name, 0.0)) for name in sorted(before.keys() | after.keys())]
    else:
        return ""
    sign = 1 if change.difference_ns > 0 else -1
    name, base, new = max(events, key=lambda one: sign * (one[2] - one[1]), default=("", 0.0, 0.0))
    if sign * (new - base) < _WORTH_NAMING * abs(change.difference_ns):
        return ""
    return f", most of all {name} ({from_to(base, new)})"


_OF_HOST = frozenset({"host_compute", "host_blocked", "kernel_launch", "allocation", "synchronisation"})
"""Classes of step time in which the host works or waits."""
_WORTH_NAMING = 0.2
"""Share of the change of a class from which what has it is named."""


def _host_times(side: Side) -> dict[str, float]:
    """Return time per step by what the host did while devices were idle; on a CPU alone, by operator.

    It is empty if a run does not show it.
    """
    times: dict[str, float] = {}
    for report in side.reports:
        causes = rows(grid(report, "host_waits", "Causes"))
        has_device = DEVICE in side.measured
        for row in causes if has_device else rows(next(report.grids("operators"), None)):
            if has_device:
                name = str(row.get("operator") or row.get("range") or row.get("where") or row["cause"])
                share = row.get("share_of_judged")
                time = float(share) * (side.mean_ns or 0.0) if isinstance(share, int | float) else 0.0
            else:
                name, time = str(row["name"]), float(whole(row.get("host_self_per_step_ns")))
            name = _NUMBERS.sub("", name)
            times[name] = times.get(name, 0.0) + time / len(side.reports)
    return times
