"""The terminal page: verdict first, sections in order, findings near the end, which stays visible."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

from rich.text import Text

from traceviz.core.sanitize import sentence, visible
from traceviz.core.units import format_ratio, format_value
from traceviz.render.figures.reading import text_figures, without_lanes
from traceviz.render.figures.values import Curves, StackedBars
from traceviz.render.first_screen import (
    DETAILS,
    FirstScreen,
    first_screen,
    judged_bars,
    leading_finding,
    most_lines,
)
from traceviz.render.options import LEAST_WIDTH, MOST_WIDTH, RenderOptions, has_first_screen, select
from traceviz.render.rows import absence, blocks_for_people, by_time_at_stake, not_measured, time_at_stake, times
from traceviz.render.terminal.blocks import bars_lines, facts_lines, timeline_lines
from traceviz.render.terminal.figures import picture_lines
from traceviz.render.terminal.grid import grid_lines
from traceviz.render.terminal.lines import (
    FINE_STYLE,
    INDENT,
    QUIET,
    SEVERITY_MARK,
    SEVERITY_STYLE,
    STRONG,
    TITLE,
    paragraph,
    rule,
    to_text,
    wrap,
)
from traceviz.render.terminal.plot import series_lines
from traceviz.render.verdict_text import (
    FirstLines,
    advice_from_evidence,
    describe_absence_of_findings,
    first_lines,
)
from traceviz.report import (
    SCHEMA,
    Bars,
    Block,
    Fact,
    Facts,
    Finding,
    Grid,
    Note,
    Prose,
    Report,
    Section,
    Series,
    Severity,
    Timeline,
)
from traceviz.report.verdicts import VerdictCode

_GUTTER = "▌ "
_HEADLINE = ("producer", "producer_version", "framework", "device", "devices", "span_ns", "figures", "quality")
"""Run facts named in the header, in this order, without their labels."""
_VERDICT_STYLE = {
    VerdictCode.SLOWER: SEVERITY_STYLE[Severity.ERROR],
    VerdictCode.REGRESSION: SEVERITY_STYLE[Severity.ERROR],
    VerdictCode.CANNOT_JUDGE: SEVERITY_STYLE[Severity.WARNING],
}
"""Colours of verdicts that do not depend on the findings."""
_TITLE_KEYS = ("source", "trace", "path")


def page(report: Report, options: RenderOptions) -> str:
    """Render the whole report as text that fits ``options.width``; of a selection of sections, only these."""
    width, pictures = _width(options), text_figures(report)
    is_whole = report.schema == SCHEMA and options.sections is None
    notes = []
    if report.notes or report.skipped:
        notes = [rule("Notes", width)]
        for note in sorted(report.notes, key=lambda note: -note.severity.rank):
            notes += note_lines(note, width)
        for names, reason in not_measured(report.skipped):
            notes += skipped_lines(names, reason, width, absence(report))
    parts = [
        header_lines(report.run, width),
        [*verdict_lines(report, first_lines(report.verdict), width), *summary_line(report, width, is_whole=is_whole)],
        *(bar_part(part, width, options) for part in (judged_bars(report) if is_whole else ())),
        *(section_lines(section, width, options, pictures.get(section.slug)) for section in report.sections),
        _findings(report, width),
        notes,
    ]
    return to_text(_apart(parts), color=options.color)


def _first_parts(
    report: Report, screen: FirstScreen, width: int, options: RenderOptions
) -> list[tuple[str, list[Text]]]:
    """Return the kind and the lines of each part."""
    tables = replace(options, top=options.top or screen.rows or None)
    quiet = [text for text in (screen.unseen, screen.more) if text]
    last = [line for note in screen.notes for line in note_lines(note, width)]
    last += [line for text in quiet for line in paragraph(sentence(text), width, first=" " * INDENT, style=QUIET)]
    bars = [bar_part(part, width, options) for part in screen.bars]
    found = []
    if screen.findings or screen.others:
        found = [
            rule("Findings", width),
            *(line for one in screen.findings for line in finding_lines(one, width, steps=one.advice)),
        ]
        found += paragraph(sentence(screen.others), width, first=" " * INDENT, style=QUIET)
    return [
        ("header", header_lines(screen.run, width)),
        ("verdict", verdict_lines(report, screen.lines, width)),
        *(("bars", lines) for lines in bars),
        ("findings", found),
        *(("tables", section_lines(section, width, tables)) for section in screen.tables),
        ("gates", section_lines(screen.gates, width, options) if screen.gates else []),
        ("last", last),
    ]


def bar_part(bars: Bars, width: int, options: RenderOptions) -> list[Text]:
    """Draw a bar below a heading like that of a section."""
    heading = rule(bars.title, width, f"share of {bars.whole}" if bars.whole else "")
    return [heading, *bars_lines(replace(bars, title="", whole=""), width, color=options.color, is_short=True)]


def _width(options: RenderOptions) -> int:
    return min(max(options.width, LEAST_WIDTH), MOST_WIDTH)


def _apart(parts: list[list[Text]]) -> list[Text]:
    """Join all lines, with an empty one between the parts."""
    return [line for part in parts if part for line in (Text(), *part)][1:]


def header_lines(run: tuple[Fact, ...], width: int) -> list[Text]:
    """Identify the trace: its name, its recorder, its hardware, its duration."""
    facts = {fact.key: fact for fact in run if fact.value is not None}
    title = next((_plain(facts[key]) for key in _TITLE_KEYS if key in facts), "")
    about = [_plain(facts[key]) for key in _HEADLINE if key in facts and key != "producer_version"]
    if "producer" in facts and "producer_version" in facts:
        about[0] += f" {_plain(facts['producer_version'])}"
    lines = paragraph(title, width, style=TITLE)
    return lines + paragraph(" · ".join(about), width, style=QUIET)


def _plain(fact: Fact) -> str:
    return sentence(format_value(fact.value, fact.unit))


def verdict_lines(report: Report, first: FirstLines, width: int) -> list[Text]:
    """Draw headline, consequence and caveats, behind a bar in the colour of the worst finding, as is the figure."""
    worst = max((finding.severity for finding in report.findings), key=lambda severity: severity.rank, default=None)
    style = FINE_STYLE if worst in {None, Severity.INFO} else SEVERITY_STYLE[worst or Severity.INFO]
    if worst is not Severity.ERROR:
        style = _VERDICT_STYLE.get(report.verdict.code, style)
    lines = []
    for text in wrap(sentence(first.headline), width - len(_GUTTER)):
        before, figure, after = first.split(text)
        lines.append(Text.assemble((_GUTTER, style), (before, STRONG), (figure, style), (after, STRONG)))
    for text, how in ((first.consequence, ""), (first.caveats, QUIET)):
        lines += [Text.assemble((_GUTTER, style), (line, how)) for line in wrap(sentence(text), width - len(_GUTTER))]
    return lines


def section_lines(
    section: Section, width: int, options: RenderOptions, picture: Curves | StackedBars | None = None
) -> list[Text]:
    """Draw a heading, the picture of the section, and its blocks; empty blocks are skipped."""
    drawn = picture_lines(picture, width, color=options.color, title=section.title) if picture else []
    lines = [rule(section.title or section.slug, width), *drawn]
    blocks = without_lanes(section.blocks, picture) if drawn else section.blocks
    for block in blocks_for_people(blocks):
        drawn = block_lines(block, width, options)
        if drawn and len(lines) > 1 and isinstance(block, Grid | Bars | Timeline | Series):
            lines.append(Text())
        lines += drawn
    return lines


def block_lines(block: Block, width: int, options: RenderOptions) -> list[Text]:
    """Draw one block as lines."""
    match block:
        case Facts():
            return facts_lines(block, width)
        case Grid():
            return grid_lines(block, width, options.top)
        case Bars():
            return bars_lines(block, width, color=options.color)
        case Timeline():
            return timeline_lines(block, width)
        case Series():
            return series_lines(block, width)
        case Prose():
            return paragraph(sentence(block.text), width, first=" " * INDENT)


def _findings(report: Report, width: int) -> list[Text]:
    if not report.findings:
        return []
    ordered = by_time_at_stake(report.findings)
    lines = [rule("Findings", width, "largest time at stake first; stakes may overlap")]
    for index, finding in enumerate(ordered):
        lines += [Text()] if index else []
        given = {step for earlier in ordered[:index] for step in shown_advice(earlier)}
        lines += finding_lines(finding, width, given)
    hint = f"Why, and when it misleads: traceviz explain {ordered[0].code}"
    return [*lines, Text(), *paragraph(sentence(hint), width, first=" " * INDENT, style=QUIET)]


_BODY = " " * (INDENT + 3)


def summary_line(report: Report, width: int, *, is_whole: bool) -> list[Text]:
    """Return a sentence for the top of the page: what was found besides the headline, and where to read more."""
    lead = leading_finding(report)
    others = ", ".join(
        visible(finding.slug) + (f" ({format_ratio(finding.share)})" if finding.share else "")
        for finding in by_time_at_stake(report.findings)
        if finding is not lead
    )
    if not report.findings:
        text = describe_absence_of_findings(report) if is_whole else ""
    elif not others:
        text = f"Nothing else was found. Evidence and advice: {visible(report.findings[0].code)}, at the end."
    else:
        text = f"{'Also found' if lead else 'Found'}: {others}. Evidence and advice are at the end."
    return paragraph(sentence(text), width, first=" " * INDENT)


def finding_lines(
    finding: Finding, width: int, given: Collection[str] = (), *, steps: tuple[str, ...] | None = None
) -> list[Text]:
    """Return heading with time at stake, message, evidence and advice; info findings show only their first advice.

    Advice already ``given`` by findings above is not repeated; ``steps`` replace all of it.
    """
    mark = " " * INDENT + SEVERITY_MARK[finding.severity] + " "
    stake = sentence(time_at_stake(finding))
    text = f"{visible(finding.code)} {visible(finding.slug)}" + (f" · {stake}" if stake else "")
    lines = paragraph(text, width, first=mark, style=STRONG, first_style=SEVERITY_STYLE[finding.severity])
    lines += [Text(_BODY + line) for line in wrap(sentence(finding.message), width - len(_BODY))]
    if finding.evidence:
        evidence = " · ".join(
            f"{visible(fact.label)}: {sentence(format_value(fact.value, fact.unit))}" for fact in finding.evidence
        )
        lines += paragraph(evidence, width, first=_BODY, style=QUIET)
    for step in shown_advice(finding) if steps is None else steps:
        if step not in given:
            lines += paragraph(sentence(step), width, first=_BODY + "• ")
    return lines


def shown_advice(finding: Finding) -> tuple[str, ...]:
    """Return all advice of a finding with time at stake; of an info finding, only the most promising."""
    advice = advice_from_evidence(finding)
    return advice[:1] if finding.severity is Severity.INFO else advice


def note_lines(note: Note, width: int) -> list[Text]:
    """Return marker, message, and the number of occurrences."""
    mark = " " * INDENT + SEVERITY_MARK[note.severity] + " "
    return paragraph(sentence(note.message) + times(note), width, first=mark, first_style=SEVERITY_STYLE[note.severity])


def skipped_lines(names: str, reason: str, width: int, absence: str) -> list[Text]:
    """Report the sections that were not measured or compared, with the reason; missing data is not a good result."""
    text = f"{visible(names)} ({sentence(reason)})"
    return paragraph(text, width, first=" " * INDENT + f"{absence}: ", style=QUIET, first_style=QUIET)


class TerminalRenderer:
    """Text of the requested width; ANSI colour only if requested.

    The header uses ``source``, ``producer``, ``producer_version``, ``framework``, ``device`` or ``devices`` and
    ``span_ns`` of the run facts.
    """

    name: ClassVar[str] = "terminal"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render the page, without trailing spaces, ended by a newline."""
        if has_first_screen(report, options):
            width = _width(options)
            room = most_lines(width)
            lines: list[Text] = []
            for detail in DETAILS:  # the first that fits
                parts = _first_parts(report, first_screen(report, detail), width, options)
                lines = _apart([part for _, part in parts])
                if len(lines) > room:  # drop the empty lines between bars, and between tables
                    kinds = groupby(parts, key=itemgetter(0))
                    lines = _apart([[line for _, part in group for line in part] for _, group in kinds])
                if len(lines) <= room:
                    break
            return to_text(lines, color=options.color)
        return page(select(report, options.sections), options)
