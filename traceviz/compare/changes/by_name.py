"""Events of both sides by name: kernels (and by the work that they do), CUDA API calls, copies, input stages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.changes.events import EventChange, Status, changes_by_name, event_changes, total_ns
from traceviz.compare.changes.figures import no_steps, why_not
from traceviz.compare.kernel_pairs import Events, How, Match, PerStep, matches
from traceviz.compare.sides.sides import Side, apportion, grid, rows, whole
from traceviz.core.units import format_ratio
from traceviz.report import IN_STEPS, Grid
from traceviz.report.verdicts import InputVerdict

_STAGE_COLUMNS = frozenset({"stage", "kind", "self_ns", "path"})
"""Columns of the grid of stages. Grids of the inside of a stage have no path."""


@dataclass(frozen=True, slots=True)
class StageChanges:
    """Stages of the input pipeline, by the time that steps waited in each, the largest difference first.

    Args:
        changes: ``group`` is the evidence (tf.data, NVTX range, ...); calls are not counted.
        base_share: Share of step time that waits for input; ``None`` if it was not measured.
        new_share: The same for the new side.
        why_not: Why stages cannot be compared; empty if they can.
    """

    changes: tuple[EventChange, ...] = ()
    base_share: float | None = None
    new_share: float | None = None
    why_not: str = ""


def compare_stages(base: Side, new: Side) -> StageChanges:
    """Compare the stages of the input pipeline by name."""
    why = why_not(base, new, "input_pipeline", "the input pipeline")
    unsure = [side.label for side in (base, new) if not sees_input(side)]
    if not why and unsure:
        why = f"the wait for input cannot be told in {' and '.join(unsure)}"
    if not why and not (base.steps and new.steps):
        why = no_steps(base, new)
    if why:
        return StageChanges(why_not=why)
    before, after = (side.mean("input_pipeline", "input_share") for side in (base, new))
    return StageChanges(changes_by_name(_stages(base), _stages(new)), before, after)


def sees_input(side: Side) -> bool:
    """Return whether the wait for input was measured in every run. A verdict of "cannot judge" does not count.

    If steps are divided into classes, input wait must be a measured class. Otherwise the report only bounds the time in
    which steps could have waited for input.
    """
    verdicts = [InputVerdict.read(value) for value in side.facts("input_pipeline", "verdict")]
    is_measured = all(verdict is None or verdict.is_measured for verdict in verdicts)
    return is_measured and len(verdicts) == len(side.reports) and (not side.classes or "input_wait" in side.measured)


def _stages(side: Side) -> Events:
    stages: dict[str, PerStep] = {}
    for report in side.reports:
        grids = report.grids("input_pipeline")
        table = next((grid for grid in grids if {column.name for column in grid.columns} >= _STAGE_COLUMNS), None)
        for row in rows(table):
            name, waited = str(row["stage"]), side.per_step(whole(row["self_ns"]))
            before = stages[name].ns if name in stages else Fraction(0)
            stages[name] = PerStep(Fraction(0), before + waited, str(row["kind"]))
    return stages


IN_COMMON = 0.1
"""Below this share of kernel time in kernels of both sides, names cannot be compared."""


@dataclass(frozen=True, slots=True)
class KernelChanges:
    """Kernels of both sides, the largest difference first.

    Args:
        changes: Empty if ``why_not`` gives a reason, or if neither side ran any.
        base_ns: Kernel time per step, summed over streams; ``None`` if it was not recorded.
        new_ns: The same for the new side.
        common: Share of the kernel time of both sides in kernels of both, regardless of the families of the others;
            ``None`` if there is no kernel time.
        why_not: Why kernels cannot be compared; empty if they can.
    """

    changes: tuple[EventChange, ...] = ()
    base_ns: int | None = None
    new_ns: int | None = None
    common: float | None = None
    why_not: str = ""

    def of(self, *status: Status) -> tuple[EventChange, ...]:
        """Return the changes of these kinds."""
        return tuple(change for change in self.changes if change.status in status)


def compare_kernels(base: Side, new: Side) -> KernelChanges:
    """Compare kernels by name, and kernels without a match by the work that they do.

    :mod:`traceviz.compare.kernel_pairs` has the rules.
    """
    if why := why_not(base, new, "kernels", "kernels", IN_STEPS):
        return KernelChanges(why_not=why)
    pairs = match_kernels(base, new)
    before, after = base.kernels, new.kernels
    common = common_share(pairs, before, after)
    formats = [side.run_fact("format") for side in (base, new)]
    why = ""
    if common is not None and common < IN_COMMON and set(formats[0]) != set(formats[1]):
        named = " and ".join(", ".join(names) or "an unknown format" for names in formats)
        why = (
            f"cannot compare kernels: only {format_ratio(common)} of kernel time is in kernels of both sides, and "
            f"{named} may call the same ones differently"
        )
    changes = () if why else event_changes(pairs, before, after)
    return KernelChanges(changes, round(total_ns(before.values())), round(total_ns(after.values())), common, why)


def match_kernels(base: Side, new: Side) -> tuple[Match, ...]:
    """Match the kernels of both sides; compare calls per step, regardless of the work of a step."""
    return matches(*(_per_step(side.kernels, side.per) for side in (base, new)))


def _per_step(events: Events, units: Fraction) -> Events:
    """Convert events per unit of work to events per step; a step does ``units`` units."""
    return {name: PerStep(event.calls * units, event.ns * units, event.group) for name, event in events.items()}


def common_share(pairs: Iterable[Match], base: Events, new: Events) -> float | None:
    """Return the share of the time of both sides in kernels that both have; ``None`` if there is no time.

    Kernels that only do the same work (:attr:`How.FAMILY`) are not the same kernels.
    """
    both = [match for match in pairs if match.how < How.FAMILY]
    shared = total_ns(base[name] for match in both for name in match.base)
    shared += total_ns(new[name] for match in both for name in match.new)
    total = total_ns(base.values()) + total_ns(new.values())
    return float(shared / total) if total else None


@dataclass(frozen=True, slots=True)
class CopyChange:
    """Copies of one kind (``h2d``, ``d2h``, ``d2d``, ``memset``, ...); ``bytes`` per steady step, whole."""

    times: EventChange
    base_bytes: int
    new_bytes: int

    @property
    def kind(self) -> str:
        """The kind of copy: its source and destination."""
        return self.times.name


@dataclass(frozen=True, slots=True)
class CopyChanges:
    """Kinds of copies of both sides, the largest difference first."""

    changes: tuple[CopyChange, ...] = ()
    why_not: str = ""


def compare_copies(base: Side, new: Side) -> CopyChanges:
    """Compare copies and fills by kind."""
    if why := why_not(base, new, "copies", "copies", IN_STEPS):
        return CopyChanges(why_not=why)
    changes = changes_by_name(base.events("copies", "kind"), new.events("copies", "kind"))
    sizes = [_whole_bytes(side) for side in (base, new)]
    return CopyChanges(tuple(CopyChange(times, *(size.get(times.name, 0) for size in sizes)) for times in changes))


def bytes_by_kind(side: Side) -> dict[str, Fraction]:
    """Return the bytes copied per steady step, by kind; empty if copies were not recorded."""
    totals: dict[str, int] = {}
    for report in side.reports:
        for row in rows(grid(report, "copies", IN_STEPS)):
            totals[str(row["kind"])] = totals.get(str(row["kind"]), 0) + whole(row["bytes"])
    return {kind: side.per_step(total) for kind, total in totals.items()}


def _whole_bytes(side: Side) -> dict[str, int]:
    """Return the same in whole bytes that add up to the rounded sum."""
    exact = bytes_by_kind(side)
    return dict(zip(exact, apportion(list(exact.values()), round(sum(exact.values(), Fraction(0)))), strict=True))


NOTABLE = 0.01
"""Smallest share of API time, on either side, that is worth a line."""
NEVER = ("", 0.0)
"""Domain and share of a function that a side never calls."""


@dataclass(frozen=True, slots=True)
class ApiChange:
    """A function of the CUDA API on both sides.

    Args:
        name: Name of the function.
        domain: ``runtime`` or ``driver``.
        base_share: Share of the API time of the whole capture, start-up included, 0 to 1, as profilers print it.
        new_share: The same for the new side.
        steady: Calls and time per steady step; ``None`` if a side has no steady steps.
    """

    name: str
    domain: str
    base_share: float
    new_share: float
    steady: EventChange | None

    @property
    def is_notable(self) -> bool:
        """True if it takes 1 % of the API time on either side."""
        return max(self.base_share, self.new_share) >= NOTABLE


@dataclass(frozen=True, slots=True)
class ApiChanges:
    """Functions of both sides, the largest share on either side first; API time per steady step, if there are steps."""

    changes: tuple[ApiChange, ...] = ()
    base_ns: int | None = None
    new_ns: int | None = None
    why_not: str = ""

    @property
    def notable(self) -> tuple[ApiChange, ...]:
        """Functions that take 1 % of the API time on either side."""
        return tuple(change for change in self.changes if change.is_notable)


def compare_api(base: Side, new: Side) -> ApiChanges:
    """Compare the CUDA API calls of both sides."""
    if why := why_not(base, new, "cuda_api", "CUDA API calls"):
        return ApiChanges(why_not=why)
    before, after = api_shares(base), api_shares(new)
    steady, totals = _api_in_steps(base, new)
    never = Fraction(0)  # calls in steady steps of a function that only start-up calls
    changes = [
        ApiChange(
            name=name,
            domain=(before.get(name) or after[name])[0],
            base_share=before.get(name, NEVER)[1],
            new_share=after.get(name, NEVER)[1],
            steady=steady.get(name, EventChange(name, "", never, never, 0, 0, Status.SAME)) if totals else None,
        )
        for name in dict.fromkeys((*before, *after))
    ]
    changes.sort(key=lambda change: (-max(change.base_share, change.new_share), change.name))
    return ApiChanges(tuple(changes), *(totals or (None, None)))


def _api_in_steps(base: Side, new: Side) -> tuple[dict[str, EventChange], tuple[int, int] | None]:
    """Return functions per steady step, and the time of all; nothing if a side has no steady steps."""
    if why_not(base, new, "cuda_api", "CUDA API calls", IN_STEPS):
        return {}, None
    before, after = (side.events("cuda_api", group="domain") for side in (base, new))
    changes = {change.name: change for change in changes_by_name(before, after)}
    return changes, (round(total_ns(before.values())), round(total_ns(after.values())))


def api_shares(side: Side) -> dict[str, tuple[str, float]]:
    """Return domain and share of API time by function, over the whole captures of all runs.

    It is empty if no API call was recorded.
    """
    totals: dict[str, tuple[str, int]] = {}
    for report in side.reports:
        for row in rows(grid(report, "cuda_api", "") or Grid((), ())):
            name = str(row["name"])
            totals[name] = str(row["domain"]), totals.get(name, ("", 0))[1] + whole(row["total_ns"])
    everything = sum(total for _, total in totals.values())
    return {name: (domain, total / everything if everything else 0.0) for name, (domain, total) in totals.items()}
