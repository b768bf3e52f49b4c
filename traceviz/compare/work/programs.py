"""Differences between the programs of two sides: their parameters, modules, operators or kernels.

The strongest evidence decides. Parameters of the same shapes are the same model with any operators. Next come modules
of the same classes, then equal numbers of convolutions and matrix products per step. Libraries, precisions and fused
kernels change none of these. If one kind of evidence shows the same program, weaker kinds are ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from traceviz.compare.changes.by_name import compare_kernels
from traceviz.compare.sides.sides import Side, fact, grid, rows
from traceviz.compare.work import parameters as of_parameters
from traceviz.compare.work.amounts import calls_per_step
from traceviz.compare.work.ingredients import Ingredients, Source, as_often, ingredients
from traceviz.compare.work.kinds import Kind
from traceviz.core.units import format_number, format_ratio
from traceviz.report import Report

OF_MODULES = "calls of nn.Module"
"""Source of the section on modules if it lists calls of modules instead of ranges."""
_INSTANCE = re.compile(r"^(?:\d+\()?(.*?)(?:_\d+|\))?$")
"""Matches the number that distinguishes modules of a class: ``Linear_3``, ``3(Linear)``."""
_COMPILED = re.compile(r"^(?:OptimizedModule|CompiledFxGraph|GraphModule)")
"""Modules whose parts Python no longer calls."""


def modules(side: Side) -> Counter[str]:
    """Count the innermost modules by class, from the first run that names any.

    It is empty if no run does, or the model is compiled.
    """
    return next((counted for report in side.reports if (counted := _modules(report))), Counter())


def _modules(report: Report) -> Counter[str]:
    if fact(report, "modules", "source") != OF_MODULES:
        return Counter()
    paths = {str(row["path"]) for row in rows(grid(report, "modules", "Exact"))}
    outer = {path.rpartition(" / ")[0] for path in paths}
    names = [_INSTANCE.sub(r"\1", path.rpartition(" / ")[2]) for path in paths - outer]
    compiled = any(_COMPILED.match(part) for path in paths for part in path.split(" / "))
    return Counter() if compiled else Counter(names)


def in_common(base: Counter[str], new: Counter[str]) -> float:
    """Return the share of the modules of both sides that both have."""
    return (base & new).total() / max((base | new).total(), 1)


def only_in(base: Counter[str], new: Counter[str]) -> Iterator[str]:
    """Return the modules that the first side has more of, the most first: ``20 Conv2d``."""
    return (f"{count} {name}" for name, count in sorted((base - new).items(), key=lambda item: (-item[1], item[0])))


MATTERS = 0.2
"""Share of the time on one side from which a kind of work matters."""
NONE = 0.01
"""Share of the time below which a kind counts as absent."""
OPAQUE = 0.3
"""Share of time in work of any kind above which a side does not show what it computes."""
AS_OFTEN = {Kind.CONVOLUTION: 1.25, Kind.PRODUCT: 2.0}
"""Factors from which a kind is called more often per step. Products may be fused: query, key and value in one."""
KERNELS_AS_OFTEN = 2.0
"""The same for kernels; libraries use one or several per product."""
OTHER_KERNELS_AS_OFTEN = 1.25
"""The same if less than :data:`OTHER` of the time is in kernels of both sides."""
OTHER = 0.5
"""Share of the time in kernels of both sides below which most kernels differ."""
SAME = 1.1
"""Factor up to which a kind is called equally often per step."""
GRADIENTS = 0.1
"""Share of operator time in gradients from which a side trains."""
IN_COMMON = 0.1
"""Share of the time in operators of both sides below which the operators differ."""
_NAMED = 3
"""Most parameters and modules of each side that are named."""

_SOURCES: tuple[Source, ...] = ("operators", "ops", "kernels")
_OF_TIME: dict[Source, str] = {"operators": "operator time", "ops": "the time of ops", "kernels": "kernel time"}


@dataclass(frozen=True, slots=True)
class Programs:
    """Comparison of the programs of two sides.

    Args:
        differences: Differences as text; empty if none is known.
        is_same: True if evidence shows that they are the same.
    """

    differences: tuple[str, ...] = ()
    is_same: bool = False


def programs(base: Side, new: Side) -> Programs:
    """Compare the programs of two sides."""
    gradients = tuple(_of_gradients(base, new))
    weights = _of_parameters(base, new)
    parts = Programs() if weights.is_same else _of_modules(base, new)
    if weights.is_same or (parts.is_same and not weights.differences):
        return Programs(gradients, is_same=not gradients)
    work = _of_work(base, new)
    if work.is_same and not weights.differences:
        return Programs(gradients, is_same=not gradients)
    return Programs((*weights.differences, *parts.differences, *work.differences, *gradients))


def same_operators(base: Side, new: Side) -> bool:
    """Return whether both sides call every kind of operator that matters equally often."""
    return _of_work(base, new).is_same


def _of_parameters(base: Side, new: Side) -> Programs:
    before, after = of_parameters.parameters(base), of_parameters.parameters(new)
    if before is None or after is None:
        return Programs()
    share = of_parameters.in_common(before, after)
    if share >= of_parameters.OTHER:
        return Programs(is_same=share >= of_parameters.ALIKE)
    only = of_parameters.only_in(before, after), of_parameters.only_in(after, before)
    return Programs((f"parameters: {_only_in(base, new, *only)}",))


def _of_modules(base: Side, new: Side) -> Programs:
    before, after = modules(base), modules(new)
    if not before or not after:
        return Programs()
    share = in_common(before, after)
    if share >= of_parameters.OTHER:
        return Programs(is_same=share >= of_parameters.ALIKE)
    only = list(only_in(before, after)), list(only_in(after, before))
    return Programs((f"modules: {_only_in(base, new, *only)}",))


def _only_in(base: Side, new: Side, before: list[str], after: list[str]) -> str:
    """Return ``20 Conv2d and 1 more only in cnn, 2 LSTM only in rnn``."""
    return ", ".join(
        f"{_name_some(names)} only in {side.label}" for side, names in ((base, before), (new, after)) if names
    )


def _name_some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return f"{', '.join(names[:_NAMED])}{f' and {more} more' if more > 0 else ''}"


def _of_gradients(base: Side, new: Side) -> Iterator[str]:
    """Yield a difference if one side trains, and the other only infers."""
    one, other = (ingredients(side).get("operators") for side in (base, new))
    if one is None or other is None:
        return
    for this, that, side, against in ((one, other, base, new), (other, one, new, base)):
        if this.gradients >= GRADIENTS and not that.gradients and that.unknown <= OPAQUE:
            yield f"gradients are computed in {side.label}, and not in {against.label}"


def _of_work(base: Side, new: Side) -> Programs:
    """Compare the work of steps by operators if both sides have them, else by ops, kernels, or across sources."""
    before, after = ingredients(base), ingredients(new)
    if not before or not after:
        return Programs()
    source = next((source for source in _SOURCES if source in before and source in after), None)
    if source is None:
        one, other = (next(known[source] for source in _SOURCES if source in known) for known in (before, after))
        return Programs(tuple(_missing(base, new, one, other)))
    one, other = before[source], after[source]
    missing = tuple(_missing(base, new, one, other))
    if missing or max(one.unknown, other.unknown) > OPAQUE:
        return Programs(missing)
    more = tuple(_more_often(base, new, one, other))
    if more:
        return Programs(more)
    if max(one.matrix, other.matrix) >= MATTERS:
        return Programs(is_same=source != "kernels" and _have_equal_calls(one, other))
    if source == "kernels":  # they have a rule of their own
        return Programs()
    common = one.names.keys() & other.names.keys()
    share = sum(made_of.names[name][0] for made_of in (one, other) for name in common) / 2
    if share >= IN_COMMON:
        # Captures hold any number of steps: their operators show the same work only if they are called equally often.
        equal = [
            name for name in common if not base.of_captures or _are_equal(one.names[name][1], other.names[name][1])
        ]
        same_time = sum(made_of.names[name][0] for made_of in (one, other) for name in equal) / 2
        return Programs(is_same=same_time >= of_parameters.ALIKE)
    largest = [max(made_of.names, key=lambda name: made_of.names[name][0]) for made_of in (one, other)]
    named = " and ".join(f"{name} takes most of {side.label}" for name, side in zip(largest, (base, new), strict=True))
    return Programs((f"hardly an operator is in both: {format_ratio(share)} of {_OF_TIME[one.source]}; {named}",))


def _have_equal_calls(one: Ingredients, other: Ingredients) -> bool:
    """Return whether a step calls every kind that matters equally often on both sides."""
    kinds = [kind for kind in Kind if max(one.share(kind), other.share(kind)) >= MATTERS]
    calls = [(one.calls.get(kind, 0.0), other.calls.get(kind, 0.0)) for kind in kinds]
    return bool(calls) and all(_are_equal(*pair) for pair in calls)


def _are_equal(one: float, other: float) -> bool:
    return max(one, other) <= SAME * min(one, other)


def _missing(base: Side, new: Side, one: Ingredients, other: Ingredients) -> Iterator[str]:
    """Yield kinds that matter on one side and are absent on the other, if the other shows what it computes."""
    for this, that, side, against in ((one, other, base, new), (other, one, new, base)):
        if that.unknown > OPAQUE:
            continue
        for kind in (Kind.CONVOLUTION, Kind.RECURRENT):
            is_seen = kind is Kind.CONVOLUTION or this.source == that.source != "kernels"
            if is_seen and this.share(kind) >= MATTERS and that.share(kind) < NONE:
                yield f"{kind} take {_share(this, kind)} in {side.label}, and there are none in {against.label}"
        if this.share(Kind.ATTENTION) >= MATTERS and not _has_attention(that) and this.source == that.source:
            share = _share(this, Kind.ATTENTION)
            yield f"attention takes {share} in {side.label}, and {against.label} has none, and no softmax"
        if this.matrix >= MATTERS and that.matrix < NONE:
            largest = max(this.shares, key=this.share)
            if largest is not Kind.CONVOLUTION:
                yield f"{largest} take {_share(this, largest)} in {side.label}, and there are none in {against.label}"


def _has_attention(made_of: Ingredients) -> bool:
    """Return whether there is attention, or a softmax, which suggests attention in parts."""
    parts = (name for name in made_of.names if "softmax" in name.lower() and "log" not in name.lower())
    return made_of.share(Kind.ATTENTION) >= NONE or any(parts)


def _share(made_of: Ingredients, kind: Kind) -> str:
    return f"{format_ratio(made_of.share(kind))} of {_OF_TIME[made_of.source]}"


def _more_often(base: Side, new: Side, one: Ingredients, other: Ingredients) -> Iterator[str]:
    """Yield kinds that a step of one side calls more often, unless everything has the same whole factor."""
    if base.of_captures or as_often(one, other) is not None:
        return  # of captures, every name is compared
    if one.source == "kernels":
        if min(one.matrix, other.matrix) >= MATTERS and calls_per_step(base, new) is None:
            calls = sum(one.calls.values()), sum(other.calls.values())
            factor = OTHER_KERNELS_AS_OFTEN if _are_others(base, new) else KERNELS_AS_OFTEN
            yield from _times(base, new, "kernels of matrix products and convolutions", calls, factor)
        return
    for kind, factor in AS_OFTEN.items():
        if max(one.share(kind), other.share(kind)) >= MATTERS:
            yield from _times(base, new, kind, (one.calls.get(kind, 0.0), other.calls.get(kind, 0.0)), factor)


def _are_others(base: Side, new: Side) -> bool:
    """Return whether most kernels differ within one framework."""
    frameworks = {*base.run_fact("framework")}, {*new.run_fact("framework")}
    if all(frameworks) and frameworks[0] != frameworks[1]:
        return False
    common = compare_kernels(base, new).common
    return common is not None and common < OTHER


def _times(base: Side, new: Side, what: str, calls: tuple[float, float], factor: float) -> Iterator[str]:
    if min(calls) * factor <= max(calls) and min(calls) > 0:
        counts = (
            f"{format_number(round(count, 1))} in {side.label}" for side, count in zip((base, new), calls, strict=True)
        )
        yield f"{what} per step: {' and '.join(counts)}"
