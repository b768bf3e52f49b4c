"""A comparison as a report document for all renderers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from traceviz.compare.attribution import Attribution, ClassChange
from traceviz.compare.changes.whole_runs import PartChange
from traceviz.compare.compare import Comparison, Pair
from traceviz.compare.remark import Remark
from traceviz.compare.report.by_side import api_by_side, classes_by_side, host_by_side, parts_by_side
from traceviz.compare.report.change_sections import (
    CHANGE_SECTIONS,
    OF_CAPTURES,
    BlocksOfPair,
    changed_by_side,
    resources_by_side,
)
from traceviz.compare.report.change_table import Cell, change_table
from traceviz.compare.report.effect_section import effect_section
from traceviz.compare.report.sentences import between, class_name, interval_ns, measured, on_average, verdict_sentence
from traceviz.compare.report.whole_runs import learning_curves, measures_by_side, quality_by_side
from traceviz.compare.sides.sides import grid, rows
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
from traceviz.trace.names.cuda_names import in_words_of_hip, is_of_hip

_OF_THE_WHOLE = frozenset({"measures", "quality"})
"""Sections of changes that are about whole runs, as the verdict may be. They come before the parts of a step."""
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
    """Return the report with all sections; if there are several pairs, the one shown in full comes first."""
    changes = [
        _changes(comparison, *change_section)
        for change_section in CHANGE_SECTIONS
        if change_section[0] not in OF_CAPTURES
        or any(_has_captures(pair, change_section[0]) for pair in comparison.pairs)
    ]
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


def _has_captures(pair: Pair, slug: str) -> bool:
    return any(found.kind.name == slug for found in pair.captures)


def _effect(comparison: Comparison) -> Section:
    """Return the section with the table of sides, the composition of their times, and the reason for an automatic
    base.
    """
    section, sides = effect_section(comparison), comparison.sides
    chooses = "--base chooses another."
    why = [
        Prose(f"All are compared with {base.label}, {base.why_base}: {chooses}") for base in sides[:1] if base.why_base
    ]
    return replace(section, blocks=(*section.blocks, *why, *classes_by_side(sides), *parts_by_side(sides)))


def _about(comparison: Comparison) -> tuple[Fact, ...]:
    """Return the facts of the comparison; the first is the title of the page."""
    base, *others = (side.label for side in comparison.sides)
    shown = comparison.shown
    title = f"{base} → {shown.new.label}" + (f", of {len(others) + 1} sides" if len(others) > 1 else "")
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
    """Return the changes of one kind: the shown pair for people, all other pairs for machines."""
    pairs = [(pair, *blocks_of(pair, on_average(comparison))) for pair in shown_first(comparison)]
    is_ranked = len(comparison.sides) > 2 or slug == "quality"  # learning curves are of all runs of two sides, too
    several = _BY_SIDE[slug](comparison) if slug in _BY_SIDE and is_ranked else []
    if several and slug in _INSTEAD_OF_PAIRS:
        return Section(slug, title, tuple(several))
    of_pairs = [block for pair, changes, _ in pairs for block in _of_pair(comparison, pair, changes)]
    if several and slug in _PAIRS_FOR_MACHINES:
        of_pairs = [replace(block, audience="machine") for block in of_pairs if isinstance(block, Facts | Grid)]
    blocks = [*several, *of_pairs]
    if slug == "cuda_api" and _are_of_hip(comparison):
        blocks = [replace(one, title=in_words_of_hip(one.title)) if isinstance(one, Grid) else one for one in blocks]
        title = in_words_of_hip(title)
    why_not = pairs[0][2]
    if not blocks:
        return Skipped(slug, why_not, () if _is_recorded(comparison, slug) else (slug,))
    return Section(slug, title, (*([Prose(f"{why_not}.")] if why_not else ()), *blocks))


_BY_SIDE: Mapping[str, Callable[[Comparison], list[Block]]] = {
    "measures": lambda comparison: measures_by_side(comparison.sides),
    "quality": lambda comparison: [*quality_by_side(comparison.sides), *learning_curves(comparison.sides)],
    "changed": changed_by_side,
    "cuda_api": lambda comparison: api_by_side(comparison.sides),
    "host": lambda comparison: host_by_side(comparison.sides),
    "resources": lambda comparison: resources_by_side(comparison.sides),
}
"""First blocks of a section for more than two sides: a figure of each side."""
_INSTEAD_OF_PAIRS = frozenset({"resources"})
"""Sections in which these blocks replace those of the pairs."""
_PAIRS_FOR_MACHINES = frozenset({"changed"})
"""Sections in which these blocks say the same as those of the pairs, which stay for machines."""


def shown_first(comparison: Comparison) -> tuple[Pair, ...]:
    """Return all pairs, the one that is shown in full first."""
    shown = comparison.shown
    return (shown, *(pair for pair in comparison.pairs if pair is not shown))


def _of_pair(comparison: Comparison, pair: Pair, blocks: Iterable[Block]) -> Iterator[Block]:
    """Label blocks with their pair if there are several pairs. Blocks of pairs that are not shown are for machines."""
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


def _are_of_hip(comparison: Comparison) -> bool:
    """Return whether no side called CUDA, and some called HIP."""
    calls = [row["name"] for side in comparison.sides for row in rows(grid(side.reports[0], "cuda_api", ""))[:1]]
    return bool(calls) and all(is_of_hip(str(name)) for name in calls)


def _is_recorded(comparison: Comparison, slug: str) -> bool:
    reports = (report for side in comparison.sides for report in side.reports)
    return any(section.slug == slug for report in reports for section in report.sections)


def _attribution(comparison: Comparison) -> Section:
    """Return the parts of the run and the classes of the step; those that the verdict is about come first."""
    blocks: list[Block] = []
    for pair in shown_first(comparison):
        of_run, of_step = list(_parts(pair)), list(_classes(comparison, pair))
        if pair.attribution is None and of_run and not comparison.basis.is_step:
            of_step = []
        ordered = [*of_step, *of_run] if comparison.basis.is_step else [*of_run, *of_step]
        blocks += _of_pair(comparison, pair, ordered)
    return Section("attribution", "Where the difference lies", tuple(blocks))


PARTS_TABLE: tuple[Cell[PartChange], ...] = (
    (Column("part", "Part key", "text", 9), lambda part: part.key),
    (Column("label", "Part", "text", 0), lambda part: part.label),
    (Column("base_ns", "Base", "ns", 0, additive=True), lambda part: part.base_ns),
    (Column("new_ns", "New", "ns", 0, additive=True), lambda part: part.new_ns),
    (
        Column("difference_ns", "Change", "ns", 0, bar=True, signed=True, better="lower", additive=True),
        lambda part: part.difference_ns,
    ),
)


def _parts(pair: Pair) -> Iterator[Block]:
    """Yield the exclusive parts of the whole runs, the largest change first; nothing if a side does not report them."""
    parts = sorted(pair.measures.parts, key=lambda part: -abs(part.difference_ns))
    if parts:
        yield change_table(PARTS_TABLE, parts, "parts of the whole run, which add up to it", complete=True)


def classes_table(pair: Pair, attribution: Attribution) -> tuple[Cell[ClassChange], ...]:
    """Make the columns of the classes of step time."""
    return (
        (Column("class", "Class key", "text", 9), lambda change: change.key),
        (Column("label", "Class", "text", 0), lambda change: class_name(pair, change.key)),
        (Column("base_ns", "Base", "ns", 0, additive=True), lambda change: change.base_ns if change.in_base else None),
        (Column("new_ns", "New", "ns", 0, additive=True), lambda change: change.new_ns if change.in_new else None),
        (
            Column("difference_ns", "Change", "ns", 0, bar=True, signed=True, better="lower", additive=True),
            lambda change: change.difference_ns,
        ),
        (Column("share_of_difference", "Of the change", "ratio", 1, additive=True), attribution.share),
        (Column("low_ns", "95 % from", "ns", 9, signed=True, better="lower"), lambda change: change.low_ns),
        (Column("high_ns", "95 % to", "ns", 9, signed=True, better="lower"), lambda change: change.high_ns),
        (
            Column("interval", "95 % interval", "text", 3, shorten=False, restates=True),
            lambda change: interval_ns(change.low_ns, change.high_ns),
        ),
        (Column("certain", "Beyond chance", "bool", 2), lambda change: change.is_certain),
    )


def _classes(comparison: Comparison, pair: Pair) -> Iterator[Block]:
    attribution = pair.attribution
    if attribution is None:
        of_runs = "neither the parts of a run nor those of steps are known of both sides"
        yield Prose(f"Cannot be told: {pair.why_no_attribution if comparison.basis.is_step else of_runs}.")
        return
    mean = measured(comparison, of_steps=True)
    yield Facts(
        (
            Fact("base_ns", f"{mean}, base", attribution.base_ns, "ns"),
            Fact("new_ns", f"{mean}, new", attribution.new_ns, "ns"),
        )
    )
    yield Facts((Fact("difference_ns", "difference", attribution.difference_ns, "ns"),), audience="machine")
    changes = sorted(attribution.classes, key=lambda change: -abs(change.difference_ns))
    title = f"{on_average(comparison)}; the changes add up to that of the {mean}"
    yield change_table(
        classes_table(pair, attribution), (change for change in changes if change.base_ns or change.new_ns), title
    )


REMARKS_TABLE: tuple[Cell[Remark], ...] = (
    (Column("code", "Code", "text", 1), lambda remark: remark.code),
    (Column("severity", "Severity", "text", 0), lambda remark: remark.severity.value),
    (Column("text", "Remark", "text", 0), lambda remark: remark.text),
    (Column("forbids", "Forbids", "text", 2), lambda remark: remark.forbids or None),
)


def _comparability(comparison: Comparison) -> Section:
    """Return the remarks on other differences between the sides: sentences for people, a table for machines."""
    remarks = comparison.shown.remarks
    sentences: list[Block] = [Prose(f"{remark.severity.text}: {remark.text.removesuffix('.')}.") for remark in remarks]
    nothing = Prose("Nothing was found that keeps the sides from being compared.")
    tables = (
        block
        for pair in shown_first(comparison)
        for block in _of_pair(
            comparison, pair, [replace(change_table(REMARKS_TABLE, pair.remarks, "remarks"), audience="machine")]
        )
    )
    return Section("comparability", "Comparability", (*(sentences or [nothing]), *tables))
