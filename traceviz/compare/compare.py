"""Comparison of each side with the first, and of each side of a path with the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

from traceviz.compare.attribution import Attribution, attribute
from traceviz.compare.changes.by_name import (
    ApiChanges,
    CopyChanges,
    KernelChanges,
    StageChanges,
    compare_api,
    compare_copies,
    compare_kernels,
    compare_stages,
)
from traceviz.compare.changes.captures import CaptureChanges, capture_changes
from traceviz.compare.changes.findings import FindingChanges, compare_findings
from traceviz.compare.changes.functions import FunctionChange, compare_functions
from traceviz.compare.changes.machine_use import DeviceChanges, HostChanges, compare_device_use, compare_host
from traceviz.compare.changes.whole_runs import MeasureChanges, QualityChanges, compare_measures, compare_quality
from traceviz.compare.comparability import remarks
from traceviz.compare.effect import Outcome
from traceviz.compare.judge import Judgement, judge, without_figure
from traceviz.compare.options import CompareOptions, Limits
from traceviz.compare.remark import Forbids, Remark
from traceviz.compare.sides.basis import STEP, Basis, basis_of
from traceviz.compare.sides.by_tags import OF_WORK
from traceviz.compare.sides.sides import Side
from traceviz.compare.sides.units_of_work import per_unit
from traceviz.compare.work.remarks import OTHER_WORK
from traceviz.compare.work.settings import Changed, settings_changed
from traceviz.core.errors import UsageError
from traceviz.core.notebook_repr import Shown


@dataclass(frozen=True, slots=True)
class Pair:
    """A side and the base: whether the side is faster, and where the difference comes from.

    If ``attribution`` is ``None``, ``why_no_attribution`` gives the reason.
    """

    base: Side
    new: Side
    remarks: tuple[Remark, ...]
    judgement: Judgement
    attribution: Attribution | None
    why_no_attribution: str
    measures: MeasureChanges
    quality: QualityChanges
    kernels: KernelChanges
    api: ApiChanges
    copies: CopyChanges
    stages: StageChanges
    device: DeviceChanges
    host: HostChanges
    findings: FindingChanges
    changed: tuple[Changed, ...]
    captures: tuple[CaptureChanges, ...] = ()
    function: FunctionChange | None = None

    @property
    def caveats(self) -> tuple[str, ...]:
        """Other differences that may make steps longer, as short texts shown next to the verdict."""
        return tuple(dict.fromkeys(remark.brief for remark in self.remarks if remark.brief and not remark.forbids))


@dataclass(frozen=True, slots=True)
class PathChange:
    """One side of a path against the one before it.

    Args:
        before: The previous side.
        after: The side.
        judgement: The verdict on ``after``. The speed-ups of all changes multiply to the speed-up of the last side over
            the first; their differences add up as well.
        attribution: Classes of the difference; ``None`` if unknown.
        changed: Settings that differ, as far as the reports show them.
    """

    before: Side
    after: Side
    judgement: Judgement
    attribution: Attribution | None
    changed: tuple[Changed, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A side in the ranking, and the verdict on it against the fastest side; ``None`` for the fastest itself."""

    side: Side
    against_fastest: Judgement | None


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Shown):
    """Compared sides; the first is the base of all others.

    Args:
        sides: Two or more.
        pairs: Each other side compared with the first.
        path: Each side compared with the one before; empty for two sides, or if the sides are no path.
        options: The options of the comparison.
        basis: The figure that the verdicts are about.
        by: Tags whose values define the sides; empty if the user named the sides.
        left_out: Runs that lack one of these tags.
        ranking: The base and the sides that were judged against it, the fastest first; empty for two sides, or if none
            was judged. Sides with another model tag than the base are not in it.
    """

    shown_as: ClassVar[str] = "comparison"
    sides: tuple[Side, ...]
    pairs: tuple[Pair, ...]
    path: tuple[PathChange, ...]
    options: CompareOptions
    basis: Basis = STEP
    by: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    ranking: tuple[Ranked, ...] = ()

    def __repr__(self) -> str:
        return f"Comparison({', '.join(repr(side.label[:100]) for side in self.sides)})"

    @property
    def shown(self) -> Pair:
        """The pair that is shown in full: the fastest side that can be judged, with the base.

        If none can be judged, it is the end of a path, or the fastest side that does the same work. Sides with the
        base's model tag come before others. In a cross table, so do sides of the row or column within which it
        compares.
        """
        judged = _judged(self.pairs)
        if not self.by and not judged:
            return self.pairs[-1]
        alike = [pair for pair in self.pairs if not _forbidding(pair.remarks, "verdict")]
        fixed = _fixed_tags(self.by, self.options)
        candidates = _of_same_work(judged, fixed) or _of_same_work(alike, fixed) or judged or alike or self.pairs[:1]
        return max(candidates, key=lambda pair: pair.judgement.effect.speedup if pair.judgement.effect else 0.0)


def _judged(pairs: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in pairs if pair.judgement.outcome is not Outcome.UNKNOWN]


def _fixed_tags(by: Sequence[str], options: CompareOptions) -> Sequence[str]:
    """Return the tags of a cross table within whose values it compares."""
    return {"row": by[:1], "column": by[1:2]}.get(options.tables.against, ())


def _of_same_work(pairs: Sequence[Pair], fixed: Sequence[str]) -> list[Pair]:
    """Return the pairs whose tags name the same model, data set and so on. A different, faster model is no news.

    Args:
        pairs: Pairs with the base.
        fixed: Further tags that must have the same value.
    """
    return [
        pair
        for pair in pairs
        if all(
            pair.base.groups.get(tag) == value
            for tag, value in pair.new.groups.items()
            if tag in fixed or tag.lower() in OF_WORK
        )
    ]


def compare(
    sides: Sequence[Side],
    options: CompareOptions | None = None,
    *,
    by: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Comparison:
    """Compare the first side with each of the others.

    Args:
        sides: Two or more, the base first.
        options: Options of the comparison.
        by: Tags whose values define the sides, if any. Such sides are no path.
        left_out: Runs that lack one of these tags; the report names them.

    Raises:
        UsageError: there are fewer than two sides, the tag ``options.per`` does not give their amount of work, or there
            is no measure ``options.measure``.
    """
    options = options or CompareOptions()
    if len(sides) < 2:
        only = f"There is one side, {sides[0].label}." if sides else "There is none."
        raise UsageError("A comparison takes two sides.", only, "Name the base and the sides to compare with it.")
    basis = basis_of(sides, options.measure, options.per)
    scaled = per_unit(sides, options.per) if options.per else tuple(sides)
    if not (sides[0].steps and any(side.steps for side in sides[1:])):
        scaled = tuple(replace(side, of_captures=True) for side in scaled)
    base, *others = scaled
    pairs = tuple(_pair(base, new, options, basis) for new in others)

    is_path = len(scaled) > 2 and not by
    path = tuple(_path_change(*change, options, basis) for change in pairwise(scaled)) if is_path else ()
    ranked = _of_same_work(_judged(pairs), _fixed_tags(by, options)) if len(pairs) > 1 else []
    ranking = _rank(base, ranked, options, basis) if ranked else ()
    return Comparison(scaled, pairs, path, options, basis, tuple(by), tuple(left_out), ranking)


def _rank(base: Side, pairs: Sequence[Pair], options: CompareOptions, basis: Basis) -> tuple[Ranked, ...]:
    """Rank the base and the new sides of judged pairs by their speed-ups, and judge each against the fastest."""
    speeds = [(1.0, base), *((pair.judgement.speedup or 0.0, pair.new) for pair in pairs)]
    fastest, *others = (side for _, side in sorted(speeds, key=lambda one: -one[0]))
    of_base = {pair.new.label: pair.judgement for pair in pairs} if fastest is base else {}
    judgements = (
        of_base.get(side.label)
        or _judge_and_attribute(fastest, side, remarks(fastest, side, options, basis), options.limits, basis)[0]
        for side in others
    )
    return (Ranked(fastest, None), *(Ranked(side, one) for side, one in zip(others, judgements, strict=True)))


def _path_change(before: Side, after: Side, options: CompareOptions, basis: Basis) -> PathChange:
    known = remarks(before, after, options, basis)
    judged = _judge_and_attribute(before, after, known, options.limits, basis)
    return PathChange(before, after, *judged, settings_changed(before, after))


def _judge_and_attribute(
    base: Side, new: Side, known: Sequence[Remark], limits: Limits, basis: Basis
) -> tuple[Judgement, Attribution | None]:
    """Return judgement and attribution; the latter is ``None`` if a remark forbids it or classes are unknown."""
    attribution = None if _forbidding(known, "attribution") else attribute(base, new, limits)
    ended = next(filter(None, (without_figure(side, basis) for side in (base, new))), "")
    if ended:  # different work does not matter then
        return Judgement(Outcome.UNKNOWN, None, ended, basis), attribution
    other_work = next((remark.text for remark in known if remark.code in OTHER_WORK and remark.forbids), "")
    if other_work:  # takes precedence over other reasons: more steps would not help
        return Judgement(Outcome.UNKNOWN, None, other_work, basis), attribution
    return judge(base, new, limits, _forbidding(known, "verdict"), basis), attribution


def _pair(base: Side, new: Side, options: CompareOptions, basis: Basis) -> Pair:
    known = remarks(base, new, options, basis)
    judgement, attribution = _judge_and_attribute(base, new, known, options.limits, basis)
    without = "; ".join(f"{side.label} {_without_classes(side)}" for side in (base, new) if _without_classes(side))
    return Pair(
        base,
        new,
        known,
        judgement,
        attribution,
        _forbidding(known, "attribution") or without,
        compare_measures(base, new, options.limits),
        compare_quality(base, new, options.limits),
        compare_kernels(base, new),
        compare_api(base, new),
        compare_copies(base, new),
        compare_stages(base, new),
        compare_device_use(base, new),
        compare_host(base, new),
        compare_findings(base, new),
        settings_changed(base, new),
        capture_changes(base, new),
        compare_functions(base, new),
    )


def _without_classes(side: Side) -> str:
    """Return why the classes of a side's steps are unknown; empty if they are known."""
    if not side.steps:
        return "has no steady steps"
    return "" if side.classes else "does not say what each step consists of"


def _forbidding(known: Sequence[Remark], conclusion: Forbids) -> str:
    """Return the text of the first remark that forbids a conclusion; empty if none does."""
    return next((remark.text for remark in known if remark.forbids == conclusion), "")
