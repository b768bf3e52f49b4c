"""What changed between two sides, by name: kernels, CUDA API calls, copies, input stages, host resources, findings.

Times, calls and bytes are per steady step, or per unit of its work where sides are compared by that. Nanoseconds and
bytes are whole numbers that add up to the side's own sum, rounded; calls are exact. What a side did not record is said
(``why_not``) and never taken for zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from traceviz.compare.changes.findings import FindingChange, FindingChanges, Seen, findings
from traceviz.compare.changes.host import HostChange, HostChanges, host
from traceviz.compare.changes.recorded import no_steps, why_not
from traceviz.compare.kernel_pairs import Events, How, Match, PerStep, matches
from traceviz.compare.sides.sides import Side, apportioned, grid, rows, whole
from traceviz.report import IN_STEPS, Grid, Report
from traceviz.units import Value, format_ratio

__all__ = [
    "ApiChange",
    "ApiChanges",
    "Change",
    "CopyChange",
    "CopyChanges",
    "EventChange",
    "FindingChange",
    "FindingChanges",
    "HostChange",
    "HostChanges",
    "KernelChanges",
    "Seen",
    "StageChanges",
    "api",
    "copies",
    "findings",
    "host",
    "kernels",
    "stages",
]

SAME = 0.02
"""A difference of less than this share of the base's time is none: the clock of a device moves it by as much."""
IN_COMMON = 0.1
"""With less than this share of kernel time in kernels of both sides, there is nothing to compare by name."""
NOTABLE = 0.01
"""Functions from this share of API time on, on either side, are worth a line."""


class Change(StrEnum):
    """What became of something that has a name."""

    NEW = "new"
    GONE = "gone"
    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class EventChange:
    """Events of one name on both sides, per steady step.

    Args:
        name: As the new side calls it; where it is gone, as the base did.
        group: Family of a kernel, domain of a function, evidence for an input stage; empty where there is none.
        base_calls: Exact. Zero for input stages that are not counted.
        new_calls: The same of the new side.
        base_ns: Whole; those of all changes add up to the base's sum.
        new_ns: The same of the new side.
        status: By time per step; ``renamed`` where another kernel took the work over, as family and calls tell.
        was: Name on the base where that is another one.
    """

    name: str
    group: str
    base_calls: Fraction
    new_calls: Fraction
    base_ns: int
    new_ns: int
    status: Change
    was: str = ""

    @property
    def difference_ns(self) -> int:
        """Positive where the new side takes longer."""
        return self.new_ns - self.base_ns

    @property
    def ratio(self) -> float | None:
        """The difference as a share of the base; ``None`` where the base has none."""
        return self.difference_ns / self.base_ns if self.base_ns else None


@dataclass(frozen=True, slots=True)
class KernelChanges:
    """Kernels of both sides, the largest difference first.

    Args:
        changes: Empty where ``why_not`` says so, or where neither side ran any.
        base_ns: Kernel time per step, summed over streams; ``None`` where it was not recorded.
        new_ns: The same of the new side.
        common: Share of the kernel time of both sides in kernels of both, whatever family the others have; ``None``
            where there is no kernel time.
        why_not: Why kernels cannot be compared; empty where they can.
    """

    changes: tuple[EventChange, ...] = ()
    base_ns: int | None = None
    new_ns: int | None = None
    common: float | None = None
    why_not: str = ""

    def of(self, *status: Change) -> tuple[EventChange, ...]:
        """Changes of these kinds."""
        return tuple(change for change in self.changes if change.status in status)


def kernels(base: Side, new: Side) -> KernelChanges:
    """Kernels by name; what has no match by the work that it does (:mod:`traceviz.compare.kernel_pairs`)."""
    if why := why_not(base, new, "kernels", "kernels", IN_STEPS):
        return KernelChanges(why_not=why)
    found = kernel_matches(base, new)
    before, after = base.kernels, new.kernels
    common = common_share(found, before, after)
    formats = [side.run_fact("format") for side in (base, new)]
    why = ""
    if common is not None and common < IN_COMMON and set(formats[0]) != set(formats[1]):
        named = " and ".join(", ".join(names) or "an unknown format" for names in formats)
        why = (
            f"cannot compare kernels: only {format_ratio(common)} of kernel time is in kernels of both sides, and "
            f"{named} may call the same ones differently"
        )
    changes = () if why else _changes(found, before, after)
    return KernelChanges(changes, round(_sum(before.values())), round(_sum(after.values())), common, why)


def kernel_matches(base: Side, new: Side) -> tuple[Match, ...]:
    """Kernels of both sides; calls are compared per step, whatever work a step does."""
    return matches(*(_of_a_step(side.kernels, side.per) for side in (base, new)))


def _of_a_step(events: Events, per: Fraction) -> Events:
    """Events per step, from those per unit of the work of which a step does so much."""
    return {name: PerStep(one.calls * per, one.ns * per, one.group) for name, one in events.items()}


def common_share(found: Iterable[Match], base: Events, new: Events) -> float | None:
    """Share of the time of both sides in kernels that both have; ``None`` where there is no time.

    Those that only do the same work (:attr:`How.FAMILY`) are not the same kernels.
    """
    both = [match for match in found if match.how < How.FAMILY]
    shared = _sum(base[name] for match in both for name in match.base)
    shared += _sum(new[name] for match in both for name in match.new)
    total = _sum(base.values()) + _sum(new.values())
    return float(shared / total) if total else None


def _changes(found: Sequence[Match], base: Events, new: Events) -> tuple[EventChange, ...]:
    """A change of every match, the largest difference first."""
    before = [_merged(base, match.base) for match in found]
    after = [_merged(new, match.new) for match in found]
    whole_before, whole_after = _whole(before), _whole(after)
    changes = [
        EventChange(
            name=(match.new or match.base)[0],
            group=after[index].group or before[index].group,
            base_calls=before[index].calls,
            new_calls=after[index].calls,
            base_ns=whole_before[index],
            new_ns=whole_after[index],
            status=_status(match, before[index].ns, after[index].ns),
            was=match.base[0] if match.how in {How.BASE_NAME, How.FAMILY} else "",
        )
        for index, match in enumerate(found)
    ]
    return tuple(sorted(changes, key=lambda change: (-abs(change.difference_ns), -change.base_ns, change.name)))


def _status(match: Match, base_ns: Fraction, new_ns: Fraction) -> Change:
    if not match.base:
        return Change.NEW
    if not match.new:
        return Change.GONE
    return Change.RENAMED if match.how == How.FAMILY else _by_time(base_ns, new_ns)


def _by_time(base_ns: Fraction, new_ns: Fraction) -> Change:
    if abs(new_ns - base_ns) < SAME * base_ns or new_ns == base_ns:
        return Change.SAME
    return Change.SLOWER if new_ns > base_ns else Change.FASTER


def _merged(events: Events, names: Iterable[str]) -> PerStep:
    parts = [events[name] for name in names]
    calls = sum((part.calls for part in parts), Fraction(0))
    return PerStep(calls, _sum(parts), parts[0].group if parts else "")


def _sum(events: Iterable[PerStep]) -> Fraction:
    return sum((event.ns for event in events), Fraction(0))


def _whole(events: Sequence[PerStep]) -> list[int]:
    """Nanoseconds, whole, that add up to the rounded sum."""
    return apportioned([event.ns for event in events], round(_sum(events)))


def _same_names(base: Events, new: Events) -> tuple[Match, ...]:
    """Matches by name alone."""
    return tuple(
        Match((name,) * (name in base), (name,) * (name in new), How.NAME if name in base and name in new else How.NOT)
        for name in dict.fromkeys((*base, *new))
    )


@dataclass(frozen=True, slots=True)
class ApiChange:
    """A function of the CUDA API on both sides.

    Args:
        name: Of the function.
        domain: ``runtime`` or ``driver``.
        base_share: Of the API time of the whole capture, start-up included, 0 to 1; as profilers print it.
        new_share: The same of the new side.
        steady: Calls and time per steady step; ``None`` where a side has no steady steps.
    """

    name: str
    domain: str
    base_share: float
    new_share: float
    steady: EventChange | None

    @property
    def is_notable(self) -> bool:
        """Whether it takes 1 % of the API time on either side."""
        return max(self.base_share, self.new_share) >= NOTABLE


@dataclass(frozen=True, slots=True)
class ApiChanges:
    """Functions of both sides, the largest share on either side first; API time per steady step where there are any."""

    changes: tuple[ApiChange, ...] = ()
    base_ns: int | None = None
    new_ns: int | None = None
    why_not: str = ""

    @property
    def notable(self) -> tuple[ApiChange, ...]:
        """Functions that take 1 % of the API time on either side."""
        return tuple(change for change in self.changes if change.is_notable)


def api(base: Side, new: Side) -> ApiChanges:
    """The CUDA API side by side: shares of the capture's API time, and calls and time per steady step."""
    if why := why_not(base, new, "cuda_api", "CUDA API calls"):
        return ApiChanges(why_not=why)
    before, after = api_shares(base), api_shares(new)
    steady, sums = _api_in_steps(base, new)
    changes = [
        ApiChange(
            name=name,
            domain=(before.get(name) or after[name])[0],
            base_share=before.get(name, NEVER)[1],
            new_share=after.get(name, NEVER)[1],
            steady=steady.get(name, _nothing(name)) if sums else None,
        )
        for name in dict.fromkeys((*before, *after))
    ]
    changes.sort(key=lambda change: (-max(change.base_share, change.new_share), change.name))
    return ApiChanges(tuple(changes), *(sums or (None, None)))


def _api_in_steps(base: Side, new: Side) -> tuple[dict[str, EventChange], tuple[int, int] | None]:
    """Functions per steady step, and their sums; nothing where a side does not tell."""
    if why_not(base, new, "cuda_api", "CUDA API calls", IN_STEPS):
        return {}, None
    before, after = (side.events("cuda_api", group="domain") for side in (base, new))
    changes = {change.name: change for change in _changes(_same_names(before, after), before, after)}
    return changes, (round(_sum(before.values())), round(_sum(after.values())))


def _nothing(name: str) -> EventChange:
    """What is never called in steady steps."""
    return EventChange(name, "", Fraction(0), Fraction(0), 0, 0, Change.SAME)


NEVER = ("", 0.0)
"""Domain and share of a function that a side never calls."""


def api_shares(side: Side) -> dict[str, tuple[str, float]]:
    """Domain and share of API time by function, over the whole captures of all runs; empty where none was recorded."""
    totals: dict[str, tuple[str, int]] = {}
    for report in side.reports:
        for row in rows(grid(report, "cuda_api", "") or Grid((), ())):
            name = str(row["name"])
            totals[name] = str(row["domain"]), totals.get(name, ("", 0))[1] + whole(row["total_ns"])
    everything = sum(total for _, total in totals.values())
    return {name: (domain, total / everything if everything else 0.0) for name, (domain, total) in totals.items()}


@dataclass(frozen=True, slots=True)
class CopyChange:
    """Copies of one kind (``h2d``, ``d2h``, ``d2d``, ``memset``, ...); ``bytes`` per steady step, whole."""

    times: EventChange
    base_bytes: int
    new_bytes: int

    @property
    def kind(self) -> str:
        """What is copied where."""
        return self.times.name


@dataclass(frozen=True, slots=True)
class CopyChanges:
    """Kinds of copies of both sides, the largest difference first."""

    changes: tuple[CopyChange, ...] = ()
    why_not: str = ""


def copies(base: Side, new: Side) -> CopyChanges:
    """Copies and fills by kind."""
    if why := why_not(base, new, "copies", "copies", IN_STEPS):
        return CopyChanges(why_not=why)
    sides = base.events("copies", "kind"), new.events("copies", "kind")
    changes = _changes(_same_names(*sides), *sides)
    sizes = [_whole_bytes(side) for side in (base, new)]
    return CopyChanges(tuple(CopyChange(one, *(size.get(one.name, 0) for size in sizes)) for one in changes))


def bytes_by_kind(side: Side) -> dict[str, Fraction]:
    """Bytes copied per steady step, by kind; empty where they were not recorded."""
    found: dict[str, int] = {}
    for report in side.reports:
        one = grid(report, "copies", IN_STEPS)
        for row in rows(one) if one is not None else ():
            found[str(row["kind"])] = found.get(str(row["kind"]), 0) + whole(row["bytes"])
    return {kind: side.per_step(total) for kind, total in found.items()}


def _whole_bytes(side: Side) -> dict[str, int]:
    found = bytes_by_kind(side)
    return dict(zip(found, apportioned(list(found.values()), round(sum(found.values(), Fraction(0)))), strict=True))


@dataclass(frozen=True, slots=True)
class StageChanges:
    """Stages of the input pipeline, by the time that steps waited in each, the largest difference first.

    Args:
        changes: ``group`` is the evidence (tf.data, NVTX range, ...); calls are not counted.
        base_share: Share of step time that waits for input; ``None`` where it was not measured.
        new_share: The same of the new side.
        why_not: Why stages cannot be compared; empty where they can.
    """

    changes: tuple[EventChange, ...] = ()
    base_share: float | None = None
    new_share: float | None = None
    why_not: str = ""


def stages(base: Side, new: Side) -> StageChanges:
    """Stages of the input pipeline by name."""
    why = why_not(base, new, "input_pipeline", "the input pipeline")
    unsure = [side.label for side in (base, new) if not sees_input(side)]
    if not why and unsure:
        why = f"the wait for input cannot be told in {' and '.join(unsure)}"
    if not why and not (base.steps and new.steps):
        why = no_steps(base, new)
    if why:
        return StageChanges(why_not=why)
    sides = _stages(base), _stages(new)
    before, after = (side.mean("input_pipeline", "input_share") for side in (base, new))
    return StageChanges(_changes(_same_names(*sides), *sides), before, after)


def sees_input(side: Side) -> bool:
    """Whether the wait for input was measured in every run: a verdict of "cannot judge" is none.

    Where steps are told by classes, it is one of them; without it the report can only say that there is little time in
    which input could be waited for.
    """
    verdicts = side.facts("input_pipeline", "verdict")
    judged = len(verdicts) == len(side.reports) and not {"cannot judge", "possibly input-bound"} & set(verdicts)
    return judged and (not side.classes or "input_wait" in side.measured)


def _stages(side: Side) -> Events:
    found: dict[str, PerStep] = {}
    for report in side.reports:
        for row in _stage_rows(report):
            name, waited = str(row["stage"]), side.per_step(whole(row["self_ns"]))
            before = found[name].ns if name in found else Fraction(0)
            found[name] = PerStep(Fraction(0), before + waited, str(row["kind"]))
    return found


def _stage_rows(report: Report) -> list[dict[str, Value]]:
    """Rows of the grid of stages; grids of what happens inside one have no path."""
    blocks = (block for section in report.sections if section.slug == "input_pipeline" for block in section.blocks)
    wanted = {"stage", "kind", "self_ns", "path"}
    grids = (one for one in blocks if isinstance(one, Grid) and wanted <= {column.name for column in one.columns})
    return rows(next(grids, Grid((), ())))
