"""The report as GitHub-flavoured Markdown, for an issue, a pull request or a job summary.

Text from the trace is quoted so that it stays text: it opens no tag, breaks no table, and mentions no user.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from traceviz.core.sanitize import sentence, visible
from traceviz.core.units import NOT_MEASURED, Value, format_ns, format_ratio, format_value
from traceviz.render.figures.reading import text_figures, without_lanes
from traceviz.render.figures.values import Curves, StackedBars
from traceviz.render.first_screen import FirstScreen, first_screen, judged_bars
from traceviz.render.options import RenderOptions, has_first_screen, select
from traceviz.render.rows import (
    absence,
    bars_heading,
    blocks_for_people,
    by_time_at_stake,
    cell_text,
    not_measured,
    number_of,
    shown_columns,
    shown_rows,
    telling_columns,
    time_at_stake,
    times,
)
from traceviz.render.terminal.blocks import bar, mean, sparkline
from traceviz.render.terminal.plot import plot
from traceviz.render.text import ELLIPSIS
from traceviz.render.verdict_text import (
    FirstLines,
    advice_from_evidence,
    describe_absence_of_findings,
    first_lines,
)
from traceviz.report import (
    COMPARISON,
    LISTING,
    POPULATION,
    SCHEMA,
    TREND,
    Bars,
    Block,
    Column,
    Fact,
    Facts,
    Finding,
    Grid,
    Note,
    Prose,
    Report,
    Row,
    Section,
    Series,
    Timeline,
)

_HEADING = {COMPARISON: "# Comparison", LISTING: "# Traces", POPULATION: "# Archive report", TREND: "# Trend"}
_NAME_LIMIT = 160
_BAR_CELLS = 20
_TIMELINE_CELLS = 60
_PLOT_CELLS = 80
_PICTURE_CELLS = 96
_PLAIN = re.compile(r"(?:[^\W_]|[ .,%+/×'…→−-]|(?<=[^\W_])_(?=[^\W_]))*")
"""Text that Markdown shows unchanged: words, numbers, units; underscores inside words only."""
_PUNCTUATION = re.compile(r"[\\`*{}\[\]|~!$&<>]|(?<![^\W_])_|_(?![^\W_])|^[-+=#]")
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")
_LINKING = re.compile(r"([@#])(?=\w)")


class MarkdownRenderer:
    """Headings, tables and lists; ``top`` limits the rows, width and colour have no effect."""

    name: ClassVar[str] = "markdown"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render the document, ended by a newline."""
        if has_first_screen(report, options):
            return _document(_first_parts(report, first_screen(report), options.top))
        is_whole = report.schema == SCHEMA and options.sections is None
        report = select(report, options.sections)
        pictures = text_figures(report)
        sections = [_section(section, options.top, pictures.get(section.slug)) for section in report.sections]
        findings = [_finding(finding, advice_from_evidence(finding)) for finding in by_time_at_stake(report.findings)]
        bars = map(_bars, judged_bars(report)) if is_whole else ()
        absence_of_findings = prose(describe_absence_of_findings(report)) if is_whole else ""
        head = (*_head(report, first_lines(report.verdict)), *bars)
        found = "## Findings" if findings or absence_of_findings else ""
        return _document((*head, found, absence_of_findings, *findings, *sections, _notes(report)))


def _document(parts: Iterable[str]) -> str:
    return "\n".join(line.rstrip() for line in _joined(parts).split("\n")) + "\n"


def _quoted(first: FirstLines) -> str:
    """Return headline, consequence and caveats as a quotation; the figure of the headline is code."""
    before, figure, after = first.split(first.headline)
    text = " ".join(filter(None, (prose(before), f"`{figure}`" if figure else "", prose(after))))
    caveats = f"<sub>{prose(first.caveats)}</sub>" if first.caveats else ""
    lines = (f"**{text}**" if text else "", prose(first.consequence), caveats)
    return "\n>\n".join(f"> {line}" for line in lines if line)


def _head(report: Report, first: FirstLines) -> tuple[str, str, str]:
    """Return title, verdict, and facts about the run."""
    about = _facts(tuple(fact for fact in report.run if fact.value is not None))
    return _HEADING.get(report.schema, "# Trace report"), _quoted(first), about


def _first_parts(report: Report, screen: FirstScreen, top: int | None) -> Iterator[str]:
    yield from _head(report, screen.lines)
    yield from map(_bars, screen.bars)
    yield "## Findings" if screen.findings or screen.others else ""
    yield from (_finding(finding, finding.advice) for finding in screen.findings)
    yield prose(screen.others)
    yield from (_section(section, top or screen.rows) for section in screen.tables)
    yield _section(screen.gates, top) if screen.gates else ""
    notes = [_note(note) for note in screen.notes]
    yield "\n".join([*notes, *(f"- {prose(text)}" for text in (screen.unseen, screen.more) if text)])


def prose(text: str) -> str:
    """Escape a sentence so that every character is shown unchanged."""
    escaped = _NUMBERED.sub(r"\1\\\2", _PUNCTUATION.sub(_escape, sentence(text)))
    return _LINKING.sub("\\1&#8203;", escaped)  # a zero-width space, so that no user and no issue is linked


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return html.escape(character) if character in "<>&" else f"\\{character}"


def data(text: str) -> str:
    """Return a name from a trace: unchanged if it cannot be read as markup, else as code."""
    shown = visible(text).strip()
    if len(shown) > _NAME_LIMIT:
        shown = shown[: _NAME_LIMIT * 3 // 4] + ELLIPSIS + shown[-(_NAME_LIMIT // 4) + 1 :]
    if _PLAIN.fullmatch(shown):
        return shown
    if not re.search(r"[`|\\]", shown):
        return f"`{shown}`"
    # Backticks need longer fences, and a table splits cells at a pipe even within code: entities avoid both.
    return f"<code>{''.join(_entity(character) for character in shown)}</code>"


def _entity(character: str) -> str:
    return character if character.isalnum() or character == " " or ord(character) > 0x7F else f"&#{ord(character)};"


def _section(section: Section, top: int | None, picture: Curves | StackedBars | None = None) -> str:
    drawn = _picture(picture, section.title) if picture else ""
    blocks = without_lanes(section.blocks, picture) if drawn else section.blocks
    shown = [_block(block, top) for block in blocks_for_people(blocks)]
    return _joined([f"## {prose(section.title or section.slug)}", drawn, *shown])


def _picture(picture: Curves | StackedBars, title: str) -> str:
    """Draw the picture of the terminal, without colour."""
    from traceviz.render.terminal.figures import picture_lines  # noqa: PLC0415 (rich takes 0.1 s to import)

    drawn = [line.plain.rstrip() for line in picture_lines(picture, _PICTURE_CELLS, color=False, title=title)]
    return "\n".join(("```text", *drawn, "```")) if drawn else ""


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def _block(block: Block, top: int | None) -> str:
    match block:
        case Facts():
            return _facts(block.facts)
        case Grid():
            return _grid(block, top)
        case Bars():
            return _bars(block)
        case Timeline():
            rows = []
            for lane in block.lanes:
                average = mean(lane.values)
                ratio = NOT_MEASURED if average is None else format_ratio(average)
                end = f"{ratio} of {lane.whole}" if lane.whole else ratio
                rows.append([data(lane.label), f"<code>{sparkline(lane.values, _TIMELINE_CELLS)}</code>", data(end)])
            span = f"{format_ns(block.start_ns)} to {format_ns(block.end_ns)}"
            table = _table(("lane", span, "mean"), (False, False, True), rows)
            return _joined([prose(block.title), table]) if rows else ""
        case Series():
            drawn = plot(block, _PLOT_CELLS)  # tables next to it hold its numbers
            return _joined([prose(block.title), "\n".join(("```text", *drawn, "```"))]) if drawn else ""
        case Prose():
            return prose(block.text)


def _facts(facts: tuple[Fact, ...]) -> str:
    return " · ".join(f"{prose(fact.label)}: {data(format_value(fact.value, fact.unit))}" for fact in facts)


def _table(heads: Iterable[str], rights: Iterable[bool], rows: Iterable[Iterable[str]]) -> str:
    lines = [heads, ("---:" if right else "---" for right in rights), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _grid(grid: Grid, top: int | None) -> str:
    if not shown_columns(grid):
        return ""
    title = prose(grid.title)
    if not grid.rows:
        return _joined([title, "none"])
    shown = shown_rows(grid, top)
    positions = telling_columns(grid, shown)
    columns = [grid.columns[index] for index in positions]
    rows = [[_cell(row[index], column) for index, column in zip(positions, columns, strict=True)] for row in shown.rows]
    more = f"… and {shown.hidden:,} more" if shown.hidden and shown.rest is None else ""
    if shown.rest is not None:
        rows.append(_rest(shown.rest, shown.hidden, positions, columns))
    rights = [column.unit not in {"text", "bool"} for column in columns]
    return _joined([title, _table([prose(column.label) for column in columns], rights, rows), more])


def _rest(rest: Row, hidden: int, positions: tuple[int, ...], columns: list[Column]) -> list[str]:
    """Return the line for the hidden rows: their number and their sums."""
    pairs = zip(positions, columns, strict=True)
    cells = ["" if rest[index] is None else _cell(rest[index], column) for index, column in pairs]
    label = next((position for position, column in enumerate(columns) if column.unit == "text"), 0)
    cells[label] = f"other ({hidden:,})"
    return cells


def _cell(value: Value, column: Column) -> str:
    return data(cell_text(value, column))


def _bars(bars: Bars) -> str:
    rows = [
        (
            data(part.label),
            data(format_value(part.value, bars.unit)),
            format_ratio(part.share),
            bar(number_of(part.share), _BAR_CELLS),
        )
        for part in bars.bars
    ]
    table = _table(("part", "value", "share", ""), (False, True, True, False), rows)
    return _joined([prose(bars_heading(bars)), table])


def _finding(finding: Finding, steps: tuple[str, ...]) -> str:
    stake = time_at_stake(finding)
    heading = f"### {finding.severity.text.capitalize()}: {prose(f'{finding.code} {finding.slug}')}"
    message = prose(" ".join(filter(None, (finding.message, f"({stake})" if stake else ""))))
    advice = "\n".join(f"- {prose(step)}" for step in steps)
    return _joined([heading, message, _facts(finding.evidence), advice])


def _note(note: Note) -> str:
    return f"- {note.severity.text}: {prose(note.message)}{times(note)}"


def _notes(report: Report) -> str:
    if not report.notes and not report.skipped:
        return ""
    lines = [_note(note) for note in report.notes]
    absent = absence(report)
    lines += [f"- {absent}: {prose(f'{names} ({reason})')}" for names, reason in not_measured(report.skipped)]
    return _joined(["## Notes", "\n".join(lines)])
