"""A comparison as a report document, so that every renderer serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from traceviz.compare.changes.by_side import api_by_side, host_by_side
from traceviz.compare.compare import Comparison, Pair
from traceviz.compare.report.change_sections import CHANGE_SECTIONS, BlocksOfPair, resources_by_side
from traceviz.compare.report.effect_section import effect_section
from traceviz.compare.report.measure_section import measures_by_side
from traceviz.compare.report.quality_section import quality_by_side
from traceviz.compare.report.sentences import between, class_name, interval_ns, measured, on_average, verdict_sentence
from traceviz.compare.report.side_times import classes_by_side, parts_by_side
from traceviz.compare.sides.sides import Side
from traceviz.compare.tables.sections import TABLES, table_sections
from traceviz.report import (
    COMPARISON,
    Audience,
    Block,
    Column,
    Fact,
    Facts,
    Grid,
    Prose,
    Report,
    Section,
    Skipped,
    Verdict,
)

_OF_THE_WHOLE = frozenset({"measures", "quality"})
"""Sections of changes that are about whole runs, as the verdict may be: they come before the parts of a step."""
SECTIONS = (
    *TABLES,
    "effect",
    *(slug for slug, _, _ in CHANGE_SECTIONS if slug in _OF_THE_WHOLE),
    "attribution",
    *(slug for slug, _, _ in CHANGE_SECTIONS if slug not in _OF_THE_WHOLE),
    "comparability",
    "gates",
)
"""Slugs of all sections, in order. A document lists those that no side recorded as skipped."""


def document(comparison: Comparison) -> Report:
    """Sections of everything that was compared; of several pairs, the one that is shown in full comes first."""
    changes = [_changes(comparison, *change_section) for change_section in CHANGE_SECTIONS]
    sections = [
        *table_sections(comparison),
        _effect(comparison),
        _attribution(comparison),
        *(section for section in changes if isinstance(section, Section)),
        _comparability(comparison),
    ]
    return Report(
        run=_about(comparison),
        verdict=Verdict(comparison.shown.judgement.outcome.code, verdict_sentence(comparison)),
        sections=tuple(sorted(sections, key=lambda section: SECTIONS.index(section.slug))),
        skipped=tuple(section for section in changes if isinstance(section, Skipped)),
        schema=COMPARISON,
    )


def _effect(comparison: Comparison) -> Section:
    """The table of sides, why they are compared with this base where nobody named one, and what their times hold."""
    section, sides = effect_section(comparison), comparison.sides
    chooses = "--base chooses another."
    why = [
        Prose(f"All are compared with {base.label}, {base.why_base}: {chooses}") for base in sides[:1] if base.why_base
    ]
    return replace(section, blocks=(*section.blocks, *why, *classes_by_side(sides), *parts_by_side(sides)))


def _about(comparison: Comparison) -> tuple[Fact, ...]:
    """What was compared; the first is the title of the page."""
    base, *others = (side.label for side in comparison.sides)
    shown = comparison.shown
    title = f"{base} → {others[0]}" if len(others) == 1 else f"{base} → {shown.new.label}, of {len(others) + 1} sides"
    return (
        Fact("source", "comparison", title),
        Fact("base", "base", base),
        Fact("new", "new", shown.new.label),
        Fact("sides", "sides", len(comparison.sides), "count"),
        Fact("basis", "basis", comparison.basis.name),
        Fact("per", "per", comparison.options.per or None),
        Fact("by", "by", ", ".join(comparison.by) or None),
    )


def _changes(comparison: Comparison, slug: str, title: str, blocks_of: BlocksOfPair) -> Section | Skipped:
    """Changes of one kind: those of the shown pair for people, those of all others for machines."""
    pairs = [(pair, *blocks_of(pair, on_average(comparison))) for pair in shown_first(comparison)]
    several = _BY_SIDE[slug](comparison.sides) if slug in _BY_SIDE and len(comparison.sides) > 2 else []
    if several and slug in _INSTEAD_OF_PAIRS:
        return Section(slug, title, tuple(several))
    blocks = [*several, *(block for pair, changes, _ in pairs for block in _of_pair(comparison, pair, changes))]
    why_not = pairs[0][2]
    if not blocks:
        return Skipped(slug, why_not, () if _is_recorded(comparison, slug) else (slug,))
    return Section(slug, title, (*([Prose(f"{why_not}.")] if why_not else ()), *blocks))


_BY_SIDE: Mapping[str, Callable[[Sequence[Side]], list[Block]]] = {
    "measures": measures_by_side,
    "quality": quality_by_side,
    "cuda_api": api_by_side,
    "host": host_by_side,
    "resources": resources_by_side,
}
"""First blocks of a section where there are more than two sides: a figure of each side, side by side."""
_INSTEAD_OF_PAIRS = frozenset({"resources"})
"""Sections in which these blocks show all that those of the pairs would."""


def shown_first(comparison: Comparison) -> tuple[Pair, ...]:
    """All pairs, the one that is shown in full first."""
    shown = comparison.shown
    return (shown, *(pair for pair in comparison.pairs if pair is not shown))


def _of_pair(comparison: Comparison, pair: Pair, blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks labelled with their pair where there are several; those of pairs that are not shown are for machines."""
    audience: Audience = "all" if pair is comparison.shown else "machine"
    blocks = list(blocks)
    if blocks and len(comparison.pairs) > 1:
        sides = ("pair_base", pair.base.label), ("pair_new", pair.new.label)
        yield Facts(tuple(Fact(key, key, label) for key, label in sides), audience="machine")
    for block in blocks:
        if isinstance(block, Grid):
            title = block.title if len(comparison.pairs) == 1 else f"{between(pair)}: {block.title}"
            yield replace(block, title=title, audience=block.audience if audience == "all" else audience)
        elif isinstance(block, Facts):
            yield replace(block, audience=block.audience if audience == "all" else audience)
        elif audience == "all":
            yield block


def _is_recorded(comparison: Comparison, slug: str) -> bool:
    reports = (report for side in comparison.sides for report in side.reports)
    return any(section.slug == slug for report in reports for section in report.sections)


def _attribution(comparison: Comparison) -> Section:
    """Parts of the run and classes of the step, those first that the verdict is about."""
    blocks: list[Block] = []
    for pair in shown_first(comparison):
        of_run, of_step = list(_parts(pair)), list(_classes(comparison, pair))
        if pair.attribution is None and of_run and not comparison.basis.is_step:
            of_step = []
        ordered = [*of_step, *of_run] if comparison.basis.is_step else [*of_run, *of_step]
        blocks += _of_pair(comparison, pair, ordered)
    return Section("attribution", "Where the difference lies", tuple(blocks))


PART_COLUMNS = (
    Column("part", "Part key", "text", 9),
    Column("label", "Part", "text", 0),
    Column("base_ns", "Base", "ns", 0, additive=True),
    Column("new_ns", "New", "ns", 0, additive=True),
    Column("difference_ns", "Change", "ns", 0, bar=True, signed=True, better="lower", additive=True),
)


def _parts(pair: Pair) -> Iterator[Block]:
    """The exclusive parts of the whole runs, the largest change first; nothing where a side does not tell them."""
    parts = sorted(pair.measures.parts, key=lambda part: -abs(part.difference_ns))
    rows = tuple((part.key, part.label, part.base_ns, part.new_ns, part.difference_ns) for part in parts)
    if rows:
        yield Grid(PART_COLUMNS, rows, "parts of the whole run, which add up to it", complete=True)


CLASS_COLUMNS = (
    Column("class", "Class key", "text", 9),
    Column("label", "Class", "text", 0),
    Column("base_ns", "Base", "ns", 0, additive=True),
    Column("new_ns", "New", "ns", 0, additive=True),
    Column("difference_ns", "Change", "ns", 0, bar=True, signed=True, better="lower", additive=True),
    Column("share_of_difference", "Of the change", "ratio", 1, additive=True),
    Column("low_ns", "95 % from", "ns", 9, signed=True, better="lower"),
    Column("high_ns", "95 % to", "ns", 9, signed=True, better="lower"),
    Column("interval", "95 % interval", "text", 3, shorten=False, restates=True),
    Column("certain", "Beyond chance", "bool", 2),
)


def _classes(comparison: Comparison, pair: Pair) -> Iterator[Block]:
    attribution = pair.attribution
    if attribution is None:
        of_runs = "the parts of the run are not known of both sides"
        yield Prose(f"Cannot be told: {pair.why_no_attribution if comparison.basis.is_step else of_runs}.")
        return
    rows = tuple(
        (
            change.key,
            class_name(pair, change.key),
            change.base_ns if change.in_base else None,
            change.new_ns if change.in_new else None,
            change.difference_ns,
            attribution.share(change),
            change.low_ns,
            change.high_ns,
            interval_ns(change.low_ns, change.high_ns),
            change.is_certain,
        )
        for change in sorted(attribution.classes, key=lambda change: -abs(change.difference_ns))
        if change.base_ns or change.new_ns
    )
    mean = measured(comparison, of_steps=True)
    yield Facts(
        (
            Fact("base_ns", f"{mean}, base", attribution.base_ns, "ns"),
            Fact("new_ns", f"{mean}, new", attribution.new_ns, "ns"),
        )
    )
    yield Facts((Fact("difference_ns", "difference", attribution.difference_ns, "ns"),), audience="machine")
    yield Grid(CLASS_COLUMNS, rows, f"{on_average(comparison)}; the changes add up to that of the {mean}")


REMARK_COLUMNS = (
    Column("code", "Code", "text", 1),
    Column("severity", "Severity", "text", 0),
    Column("text", "Remark", "text", 0),
    Column("forbids", "Forbids", "text", 2),
)


def _comparability(comparison: Comparison) -> Section:
    """Remarks on what else differs between the sides: sentences for people, a table for machines."""
    remarks = comparison.shown.remarks
    sentences: list[Block] = [Prose(f"{remark.severity}: {remark.text.removesuffix('.')}.") for remark in remarks]
    nothing = Prose("Nothing was found that keeps the sides from being compared.")
    tables = (block for pair in shown_first(comparison) for block in _of_pair(comparison, pair, [_remarks(pair)]))
    return Section("comparability", "Comparability", (*(sentences or [nothing]), *tables))


def _remarks(pair: Pair) -> Grid:
    rows = tuple((remark.code, remark.severity.value, remark.text, remark.forbids or None) for remark in pair.remarks)
    return Grid(REMARK_COLUMNS, rows, "remarks", audience="machine")
