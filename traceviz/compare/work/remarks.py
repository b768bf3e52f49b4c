"""Remarks on steps that do different work, or that nothing shows to do the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceviz.compare.changes.by_name import IN_COMMON, compare_kernels
from traceviz.compare.changes.captures import compare_captures
from traceviz.compare.effect import are_copies
from traceviz.compare.remark import Remark, has_no_device, in_capital, in_words, info, is_inferred, warning
from traceviz.compare.sides.capture_work import WorkKind
from traceviz.compare.sides.sides import Side, rows
from traceviz.compare.work.amounts import MOST, batch, calls_per_step, operators_per_step, other_sizes, served_work
from traceviz.compare.work.parameters import parameters, sizes_of_inputs
from traceviz.compare.work.programs import Programs, same_operators
from traceviz.core.units import counted, format_number, format_ratio, format_value
from traceviz.report import Severity

OTHER_WORK = frozenset({"program", "requests", "batch", "input-sizes", "launch-sizes", "capture-work"})
"""Codes of the remarks on other work."""
_NAMED = 2
"""Most differences of two programs that are named."""
VOUCH = "if the work of a step is the same, say so with --same-work"


def work_remarks(base: Side, new: Side, known: Programs, *, per_unit: bool) -> Iterator[Remark]:
    """Yield remarks on different work: different programs, else the first on different amounts.

    Further remarks on amounts would follow from the first.

    Args:
        base: One side.
        new: The other.
        known: The comparison of their programs.
        per_unit: True if time per unit of work is compared, so that a step may do more units.
    """
    if known.differences:
        more = len(known.differences) - _NAMED
        others = f"; {counted(more, 'other difference')}" if more > 0 else ""
        named = in_capital("; ".join(known.differences[:_NAMED]))
        text = f"the sides do different work. {named}{others}. {in_capital(VOUCH)}"
        yield Remark("program", Severity.ERROR, text, "verdict")
        return
    if per_unit:
        return
    for check in (_requests, _batches, _inputs, _sizes, _counts):
        remark = check(base, new)
        if remark is not None:
            yield remark
            return
    if not known.is_same:
        yield from _unknown(base, new)


def capture_remarks(base: Side, new: Side, kind: WorkKind) -> Iterator[Remark]:
    """Yield that no steps are compared; forbid a verdict unless both captures hold the same work."""
    yield info("captures", f"no steps are compared: {kind.words} is that of the whole captures")
    found = compare_captures(base, new, kind)
    if found.why_not or found.is_alike or same_operators(base, new):
        return
    other = found.describe_other(base, new)
    vouch = "If it is the same work, say so with --same-work"
    yield Remark(
        "capture-work", Severity.ERROR, f"the captures hold different work: counts differ ({other}). {vouch}", "verdict"
    )


def _requests(base: Side, new: Side) -> Remark | None:
    """Remark on serving engines with different requests."""
    before, after = served_work(base), served_work(new)
    if before is None or after is None or not before.differs(after):
        return None
    text = f"steps do different work ({before} against {after}): serve the same requests on both sides"
    return Remark("requests", Severity.ERROR, text, "verdict")


def _batches(base: Side, new: Side) -> Remark | None:
    """Remark on different batch sizes, if they are known for all runs."""
    before, after = batch(base), batch(new)
    if before is None or after is None or (len(before.values) == 1 and before.values == after.values):
        return None
    if before.values == after.values:
        text = f"runs of a side differ in {before.tag} ({in_words(before.values)}): make a side of each, as with --by"
        return Remark("batch", Severity.ERROR, text, "verdict")
    sizes = f"batch {in_words(before.values)} against {in_words(after.values)}"
    return Remark(
        "batch",
        Severity.ERROR,
        f"steps do different work ({sizes}): compare the time per sample with --per {before.tag}",
        "verdict",
    )


def _inputs(base: Side, new: Side) -> Remark | None:
    """Remark on inputs of other shapes to the same layers."""
    before, after = parameters(base), parameters(new)
    if before is None or after is None or batch(base) is not None:
        return None
    other = sizes_of_inputs(before, after)
    if other is None:
        return None
    factor, batches = other
    if batches is None:
        sizes = f"layers are given {format_value(factor, 'factor')} as much in a step of {new.label} as in one of "
        sizes += base.label
    else:
        sizes = f"batch {' against '.join(format_number(round(size, 1)) for size in batches)}, by the shapes of inputs"
    how = "record both with the same batch, or tag the runs (--tag batch=64) and compare with --per batch"
    text = f"steps do different work ({sizes}): {how}. {in_capital(VOUCH)}"
    return Remark("input-sizes", Severity.ERROR, text, "verdict")


def _sizes(base: Side, new: Side) -> Remark | None:
    """Remark on the same kernels over other amounts of data."""
    share = other_sizes(base, new)
    if share is None or share <= MOST:
        return None
    return Remark(
        "launch-sizes",
        Severity.ERROR,
        f"steps seem to do different work: {format_ratio(share)} of the time of the kernels in common is in launches "
        "of other sizes, as with another batch or image size. If the work is the same, say so with --same-work; else "
        "tag the runs with how much they do, and compare with --per TAG",
        "verdict",
    )


def _counts(base: Side, new: Side) -> Remark | None:
    """Remark on the same kernels or operators called several times as often per step."""
    kernels = calls_per_step(base, new)
    is_weighed = parameters(base) is not None and parameters(new) is not None  # by the sizes of inputs
    factor = kernels if kernels is not None or is_weighed else operators_per_step(base, new)
    if factor is None:
        return None
    what, code = ("operators", "operator-calls") if kernels is None else ("kernels", "kernel-calls")
    times = format_value(factor, "factor")
    often = f"a step of {new.label} runs the {what} in common {times} as often as one of {base.label}"
    if not any(is_inferred(side) for side in (base, new)):
        text = f"{often}: less work is done, or more, as with accumulated gradients"
        return warning(code, text, f"a step runs the {what} {times} as often")
    why = "steps were inferred and may not be the same thing on both sides: name them with --step-marker"
    return Remark(code, Severity.ERROR, f"{often}, and {why}", "verdict")


def _unknown(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on sides without evidence that their steps do the same work."""
    common = compare_kernels(base, new).common
    is_one_study = bool(base.tags.keys() & new.tags.keys())
    if (common is not None and common >= IN_COMMON) or is_one_study or are_copies(base.runs, new.runs):
        return
    if not (base.steps and new.steps and base.run_fact("format") and new.run_fact("format")):
        return
    if any(_overlap_mostly(_names(base, *where), _names(new, *where)) for where in _NAMES):
        return
    text = "nothing that both sides recorded shows that their steps do the same work"
    if _is_elsewhere(base, new):
        yield Remark("unknown-work", Severity.ERROR, f"{text}. {in_capital(VOUCH)}", "verdict")
    else:
        yield warning("unknown-work", text, "nothing shows that steps do the same work")


_NAMES = (("framework_ops", "op"), ("ranges", "name"))
"""Sections and columns with names from the program itself: instructions of compiled programs, ranges."""
_NUMBER = re.compile(r"(?<!\d)\d+$")


def _names(side: Side, slug: str, column: str) -> set[str]:
    """Return the names in a section; those of ranges without a number at the end (``step 3``)."""
    tables = (table for report in side.reports for table in report.grids(slug))
    names = {str(row[column]) for table in tables for row in rows(table) if column in row}
    return {_NUMBER.sub("", name) for name in names} if slug == "ranges" else names


def _overlap_mostly(base: set[str], new: set[str]) -> bool:
    """Return whether both sides have most names in common."""
    return len(base & new) > len(base | new) / 2


def _is_elsewhere(base: Side, new: Side) -> bool:
    """Return whether framework or format differ, or one side ran on no device."""
    if has_no_device(base, new) or has_no_device(new, base):
        return True
    pairs = ((set(base.run_fact(key)), set(new.run_fact(key))) for key in ("format", "framework"))
    return any(before and after and before != after for before, after in pairs)
