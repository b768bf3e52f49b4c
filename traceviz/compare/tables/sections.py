"""Tables of a comparison: the requested ones, and a cross table if sides are by two tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from traceviz.compare.compare import Comparison
from traceviz.compare.options import CompareOptions
from traceviz.compare.sides.basis import BASES, basis_of
from traceviz.compare.sides.sides import Side
from traceviz.compare.sides.units_of_work import is_batch
from traceviz.compare.tables.cross import CROSS, cross_section
from traceviz.compare.tables.curve import CURVE, curve_section
from traceviz.compare.tables.figures import number_of, spell_name, values_of
from traceviz.compare.tables.scaling import SCALING, scaling_section
from traceviz.core.errors import UsageError
from traceviz.report import Section

TABLES = (CROSS, CURVE, SCALING)
"""Slugs of all tables."""
_TWO = 2
_VERDICTS = tuple(basis.name for basis in BASES)
"""Figures that a verdict may be about."""


def tables_by(by: Sequence[str], options: CompareOptions) -> tuple[str, ...]:
    """Return the tags by which runs are grouped: those given, and those of the tables.

    Raises:
        UsageError: a cross table is requested with fewer than two tags, or table figures without a table.
    """
    tables = options.tables
    tags = tuple(dict.fromkeys((*by, *filter(None, (tables.curve, tables.scaling)))))
    if tables.cross and len(tags) < _TWO:
        named = f"--by names {tags[0]} only" if tags else "--by names none"
        raise UsageError("A cross table takes two tags.", f"{named}.", "Write it as --by model,batch --cross.")
    others = [name for name in tables.measures if spell_name(name) not in _VERDICTS]
    if others and not (tables.cross or bool(tables.curve or tables.scaling) or len(tags) == _TWO):
        raise UsageError(
            f"--measure {others[0]} is shown in tables, and there is none.",
            f"A verdict is about {', '.join(_VERDICTS)}.",
            "Add --curve TAG, or two tags: --by model,batch.",
        )
    return tags


def complete_options(sides: Sequence[Side], options: CompareOptions) -> CompareOptions:
    """Return the options completed by the consequences of the requested tables.

    The verdict is about the first of their figures that allows a verdict. In a curve over batch sizes, steps are
    compared per sample by default.
    """
    measures, tag = options.tables.measures, options.tables.curve
    measure = options.measure or next((name for name in map(spell_name, measures) if name in _VERDICTS), "")
    if measures or measure or options.per or not is_batch(tag):
        return replace(options, measure=measure)
    is_counted = all((number_of(side.groups.get(tag, "")) or 0) > 0 for side in sides)
    return replace(options, per=tag) if is_counted and basis_of(sides, "").is_step else options


def table_sections(comparison: Comparison) -> Iterator[Section]:
    """Yield the tables, in order.

    Raises:
        UsageError: no side has a requested figure, or a tag has too few numbers for a curve.
    """
    tables, by = comparison.options.tables, comparison.by
    is_by_default = len(by) == _TWO and not tables.curve and not tables.scaling and _is_crossed(comparison)
    if tables.cross or is_by_default:
        yield cross_section(comparison)
    if tables.curve:
        yield curve_section(comparison, tables.curve)
    if tables.scaling:
        yield scaling_section(comparison, tables.scaling)


def _is_crossed(comparison: Comparison) -> bool:
    """Return whether any value of one tag occurs with several of the other. A list of pairs is not a table."""
    seen = [values_of(side, comparison.by) for side in comparison.sides]
    return len(seen) > max(len(set(values)) for values in zip(*seen, strict=True))
