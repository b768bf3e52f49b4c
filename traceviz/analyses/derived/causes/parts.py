"""Exclusive parts of the judged time: every nanosecond of it belongs to one. Headline and findings both count by them.

::

    device      ####             ~~~~~~~~~~~        ####
    host            |launch|-op-|            |-op--|
    part        comp|launch|host|communicat. |host |comp

Classes in which a device works are parts of their own. Time without device work belongs to the part of its cause.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.calls.short_names import shortened
from traceviz.analyses.derived.causes.attribution import events_around, host_causes
from traceviz.analyses.derived.causes.places import PLACES
from traceviz.analyses.derived.frames import having, knowing
from traceviz.analyses.derived.host.classes import DEVICE_CLASSES, class_times
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.patterns import matches, replaced
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.report.findings.registry import record_of

NAMED = 0.1
"""A cause is named within its group if it takes this part of the group's time."""
MOSTLY = 0.5
"""A place is named if this part of the time was spent there."""
NEARLY_ALL = 0.9
"""An event around this part of the time is named before shorter ones around less."""
ENCLOSES = 0.95
"""An event of this share of the capture encloses it, and is no place."""
_CALLS_OTHERS = (
    r"^(torch|tensorflow|jax|keras|threading|contextlib|functools|importlib|multiprocessing|runpy|concurrent|asyncio)[/.]"
    r"|^<(string|frozen)|^\$(profiler|api|pjit|pxla|traceback_util|threading|contextlib)\b"
)
"""Python frames that only call other functions."""
_OF_LINE = r":\d+ "
"""Text of a sampled line that its function lacks. Without it, the lines of a function form one group."""


@once_per_trace
def part_times(trace: TraceView) -> dict[str, int]:
    """Return nanoseconds of each exclusive part of the judged time, summed over ranks; they add up to all of it."""
    causes = host_causes(trace)
    times: dict[str, int] = dict(causes.group_by("part").agg(pl.col("time_ns").sum()).sort("part").iter_rows())
    classes = class_times(trace, {rank: judged_time(trace, rank) for rank in trace.ranks})
    for key in DEVICE_CLASSES:
        # The host may be in this class as well. Time that causes explain is in their own parts.
        explained = int(having(causes, "class", key)["time_ns"].sum())
        times[key] = times.get(key, 0) + classes[key] - explained
    return times


def limit_to_parts(trace: TraceView, code: str, cost_ns: int, of_ns: int) -> int:
    """Return the time at stake of a finding, at most the share of the parts that it explains.

    It may also explain time that no recorded event covers.

    Args:
        trace: The trace.
        code: Code of the finding.
        cost_ns: Its time at stake.
        of_ns: The judged time that it is a part of, for example summed over devices.
    """
    times = part_times(trace)
    explained, whole = sum(times.get(key, 0) for key in record_of(code).explains), sum(times.values())
    explained += times.get("unexplained", 0) if explained else 0
    return min(cost_ns, explained * of_ns // whole) if explained and whole else cost_ns


def find_place(trace: TraceView, part: str) -> str:
    """Return the name of the shortest events around most of a part's time; empty if none is around half of it.

    Frames by which a framework or Python itself calls a function are no places.
    """
    whole = part_times(trace).get(part, 0)
    around = having(events_around(trace), "part", part)
    around = around.filter(pl.col("total_ns") < ENCLOSES * trace.captured_ns).sort("total_ns", "name")
    around = around.filter(~matches(pl.col("name"), _CALLS_OTHERS))
    for share in (NEARLY_ALL, MOSTLY):
        names = around.filter(pl.col("inside_ns") >= share * whole)["name"]
        if whole and len(names):
            return shortened(str(names[0]))
    return ""


@dataclass(frozen=True, slots=True)
class Culprit:
    """The event with most time of some causes: its name, the place of half of its time or more, its time and calls."""

    name: str
    place: str
    time_ns: int
    calls: int

    @property
    def words(self) -> str:
        """Name and place within a sentence."""
        return f"{self.name} in {self.place}" if self.place else self.name


def find_culprit(causes: pl.DataFrame, *, line: bool) -> Culprit | None:
    """Return the event that takes most of the time of ``causes``; ``None`` if that is less than a tenth.

    Args:
        causes: Rows of :func:`host_causes`.
        line: True if lines are those that ran. Functions are then named with the line that took most of their time.
    """
    total = int(causes["time_ns"].sum())
    named = knowing(causes, "cause").with_columns(replaced(pl.col("cause"), _OF_LINE, " ").alias("called"))
    names = named.group_by("called").agg(pl.col("time_ns").sum())
    if not names.height or not total:
        return None
    key, time = names.sort("time_ns", "called", descending=[True, False]).row(0)
    if time < NAMED * total:
        return None
    own = having(named, "called", key).sort("time_ns", "cause", descending=[True, False])
    name = str(own["cause"][0])
    place = _name_place(own, name, time, line=line)
    called = shortened(name.strip("# "), line=line)
    return Culprit(called, place if place != called else "", time, int(own["calls"].sum()))


def _name_place(causes: pl.DataFrame, name: str, time_ns: int, *, line: bool) -> str:
    """Return the range and operator in which most of these causes were, else the module, else the function.

    With ``line``, the line that ran comes first.
    """
    found = {}
    if line and (lined := _name_line(causes, time_ns)):
        return lined
    for column in PLACES:
        if causes[column].null_count() == causes.height:
            continue
        places = causes.drop_nulls(column).filter(pl.col(column) != name)
        sums = places.group_by(column).agg(pl.col("time_ns").sum()).sort("time_ns", column, descending=[True, False])
        if sums.height and sums["time_ns"][0] >= MOSTLY * time_ns:
            found[column] = shortened(str(sums[column][0]).strip("# "))
    around = [found[column] for column in ("range", "operator") if column in found]
    return " > ".join(around) or found.get("module") or found.get("location", "")


def _name_line(causes: pl.DataFrame, time_ns: int) -> str:
    """Return the function in which most of these causes were, with the line that took most of it; may be empty."""
    lines = knowing(causes, "location").group_by("location").agg(pl.col("time_ns").sum())
    functions = lines.with_columns(replaced(pl.col("location"), _OF_LINE, " ").alias("function"))
    sums = functions.sort("time_ns", "location", descending=[True, False]).group_by("function", maintain_order=True)
    found = sums.agg(pl.col("location").first(), pl.col("time_ns").sum()).sort("time_ns", descending=True)
    if not found.height or found["time_ns"][0] < MOSTLY * time_ns:
        return ""
    return shortened(str(found["location"][0]), line=True)
