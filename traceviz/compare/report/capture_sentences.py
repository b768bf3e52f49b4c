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
from traceviz.compare.sides.capture_work import KERNELS, PROGRAMS, RANGES, device_time
from traceviz.compare.sides.sides import Side, fact, grid, rows, whole
from traceviz.compare.work.parameters import are_same_layers
from traceviz.compare.work.remarks import OTHER_WORK
from traceviz.core.units import format_change, format_ns, format_ratio, format_value

_SHARED = 0.5
"""Share of the communication on streams of the computing from which both cannot overlap."""
_NUMBERS = re.compile(r"(?:, \w{1,40} = (?:N|\d{1,20})){1,8}$")
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
    events = "" if pair.judgement.outcome is Outcome.NO_CHANGE else _describe_events(pair, found)
    first = f"{total}: {events}" if total and events else total or events
    parts = [first, _describe_copies(pair), _describe_idle(pair), describe_streams(pair)]
    return "".join(f" {part}." for part in parts if part)


def _describe_total(pair: Pair, basis: Basis) -> str:
    before, after = basis.typical_ns(pair.base), basis.typical_ns(pair.new)
    if not before or not after:
        return ""
    return f"{in_capital(basis.words)} {from_to(before, after)} ({_by(before, after)}){_caveat(pair)}"


def _caveat(pair: Pair) -> str:
    """Return why a change says little: ``, but the work differs``, ``, which may be chance``."""
    if any(remark.code in OTHER_WORK and remark.forbids for remark in pair.remarks):
        return ", but the work differs"
    return ", which may be chance" if pair.judgement.effect is not None else ""


def _by(base: float, new: float) -> str:
    """Return a change in percent; a change beyond tenfold as a factor."""
    factor = new / base
    return format_change(factor - 1, "ratio") if factor <= FAR else f"{format_value(factor, 'factor')}"


def _describe_events(pair: Pair, found: CaptureChanges) -> str:
    """Return the largest changes by name; per call as well, if a side calls the event more often."""
    named = largest(found.by_short_name)
    has_ranges = found.kind is KERNELS and not found.is_by_family
    return "; ".join(f"{_describe(pair, change)}{_in_range(pair, change) * has_ranges}" for change in named)


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
    moved = " → ".join(dict.fromkeys(size for size in sizes if size != "0 B"))
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


def _in_range(pair: Pair, change: EventChange) -> str:
    """Return the innermost range or operator whose device time changed as much; nothing without one."""
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
    """Return ``Devices are idle for 9.6 → 17.4 % of the time from their first to their last work``.

    Idle time is named if its share changed, or if it is most of that time and changed itself.
    """
    (before, extent), (after, new_extent) = (_idle(side) for side in (pair.base, pair.new))
    if not extent or not new_extent:
        return ""
    is_most = max(before / extent, after / new_extent) >= _MOSTLY
    is_longer = is_most and abs(after - before) >= _LONGER * extent
    if abs(after / new_extent - before / extent) < _IDLE and not is_longer:
        return ""
    shares = [format_ratio(share) for share in (before / extent, after / new_extent)]
    share = shares[0] if shares[0] == shares[1] else f"{shares[0].removesuffix(' %')} → {shares[1]}"
    several = ", summed over devices" * any(_devices(side) > 1 for side in (pair.base, pair.new))
    times = f"({from_to(before, after)}{several})"
    cause = _name_largest(_causes(pair), after - before)
    return f"Devices are idle for {share} of the time from their first to their last work {times}{cause}"


_MOSTLY = 0.5
"""Share of the time of devices from which they are mostly idle."""
_LONGER = 0.05
"""Change of the idle time of such devices that is named, as share of their time."""


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
    ordered = parts[::-1] if _caveat(pair) else parts  # kernel time is the surer figure of few steps
    return "".join(f" {part}." for part in (*ordered, describe_streams(pair)) if part)


def _describe_kernels(pair: Pair) -> str:
    """Return the kernel time per step, if both sides have some."""
    kernels = pair.kernels
    if not kernels.base_ns or not kernels.new_ns:
        return ""
    same = ", for the same layers and inputs" * are_same_layers(pair.base, pair.new)
    change = _by(kernels.base_ns, kernels.new_ns)
    return f"Kernel time per step {from_to(kernels.base_ns, kernels.new_ns)} ({change}){same}"


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
        kernels = CaptureChanges(KERNELS, pair.kernels.changes).by_short_name
        return _name_largest([(one.name, one.base_ns, one.new_ns) for one in kernels], change.difference_ns)
    return _name_largest(_causes(pair), change.difference_ns) if change.key in _OF_HOST else ""


_Times = Sequence[tuple[str, float, float]]
"""Names, and the time of each on the base and on the new side."""


def _name_largest(times: _Times, difference_ns: float) -> str:
    """Return ``, most of all aten::copy_ (1.00 → 3.00 ms)`` for the name with most of a difference; or nothing."""
    sign = 1 if difference_ns > 0 else -1
    name, base, new = max(times, key=lambda one: sign * (one[2] - one[1]), default=("", 0.0, 0.0))
    if sign * (new - base) < _WORTH_NAMING * abs(difference_ns):
        return ""
    return f", {'most of it' if name == _UNEXPLAINED else 'most of all'} {name} ({from_to(base, new)})"


_UNEXPLAINED = "unexplained"
_OF_HOST = frozenset({"host_compute", "host_blocked", "kernel_launch", "allocation", "synchronisation"})
"""Classes of step time in which the host works or waits."""
_WORTH_NAMING = 0.2
"""Share of a difference from which what has it is named."""


def _causes(pair: Pair) -> _Times:
    """Return what the host did while devices were idle, or on a CPU alone its operators.

    Kinds of causes that only one side has are left out: the other may not have recorded them.
    """
    before, after = (_host_times(side) for side in (pair.base, pair.new))
    kinds = {kind for kind, _ in before} & {kind for kind, _ in after}
    keys = dict.fromkeys(key for key in (*before, *after) if key[0] in kinds)
    return [(key[1], before.get(key, 0.0), after.get(key, 0.0)) for key in keys]


def _host_times(side: Side) -> dict[tuple[str, str], float]:
    """Return the time of each kind and name, per step or per run; empty if no run shows it."""
    sums: dict[tuple[str, str], float] = {}
    for report in side.reports:
        has_device = any(report.blocks("device_use"))
        for row in rows(grid(report, "host_waits", "Causes") if has_device else grid(report, "cpu_steps", "Operators")):
            name = row.get("operator") or row.get("range") or row.get("where") or row.get("cause") or row.get("type")
            key = (str(row["label"]) if has_device else "", _NUMBERS.sub("", str(name)))
            share, time = row.get("share_of_judged"), float(whole(row.get("time_ns")))
            if not side.of_captures:
                time = float(share) * (side.mean_ns or 0.0) if isinstance(share, float | int) else 0.0
            sums[key] = sums.get(key, 0.0) + time / len(side.reports)
    return sums
