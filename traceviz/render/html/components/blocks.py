"""Any block of a section as HTML: facts, tables, charts and prose."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

from traceviz.core.units import Value, format_value
from traceviz.render.html.components.charts import bars, series, timeline
from traceviz.render.html.components.element import element, joined, line, name, number, prose, shown, term
from traceviz.render.rows import (
    ShownRows,
    bar_ratios,
    cell_text,
    rare_columns,
    shown_columns,
    shown_rows,
    telling_columns,
)
from traceviz.render.terminal.lines import shorten_apart
from traceviz.render.why import candidates_grid
from traceviz.report import Bars, Block, Column, Fact, Facts, Grid, Prose, Row, Series, Timeline, Verdict


def facts(items: Iterable[Fact], slug: str = "") -> Markup:
    """Draw a list of labels and values; empty if there are none."""
    entries = []
    for fact in items:
        text = format_value(fact.value, fact.unit)
        value = name(text) if isinstance(fact.value, str) else shown(text)
        label = element("dt", term(fact.label, fact.key, slug))
        entries.append(element("div", label, element("dd", value, class_=None if fact.unit == "text" else "tv-figure")))
    return element("dl", joined(entries), class_="tv-facts") if entries else Markup()


_TEXTS = frozenset({"text", "bool"})
_BAR = 60
_LONGEST = 44
"""Limit of the characters of a name in a table; a longer one is shortened in the middle, with all of it on hover."""
_CODE = re.compile(r"\bTV\d{3}\b")


@dataclass(frozen=True, slots=True)
class GridStyle:
    """Display settings of a table.

    Args:
        top: Rows shown while it is folded; ``None`` for ten, with small ones folded.
        slug: Slug of its section, for the definitions of its columns.
        caption: Text for screen readers if the table has no title.
        most: Limit of rows in the page.
        command: Command that prints the other rows; empty if the page cannot name one.
        has_script: True if a script folds and unfolds the table. Without one, folded rows are omitted.
        codes: Codes of findings that the page has; a text of one of them is a link.
    """

    top: int | None = None
    slug: str = ""
    caption: str = ""
    most: int = 1000
    command: str = ""
    has_script: bool = False
    codes: frozenset[str] = frozenset()


def grid(block: Grid, style: GridStyle) -> Markup:
    """Draw the table; rows to fold are marked, and their sums have a row of their own."""
    title = line(block.title)
    if not shown_columns(block):
        return Markup()
    if not block.rows:
        return element("p", f"{title}: none" if title else "none", class_="tv-none")
    folded = shown_rows(block, style.top)
    first = min(len(block.rows) - folded.hidden, style.most)
    carried = block.rows[: style.most if style.has_script else first]
    positions = telling_columns(block, ShownRows(carried, 0, None))
    columns = [block.columns[position] for position in positions]
    caption = element("caption", title or line(style.caption) or "Table", class_="tv-unseen")
    rare = rare_columns(columns) if style.has_script else frozenset()
    heads = joined(
        element(
            "th",
            term(column.label, column.name, style.slug),
            scope="col",
            class_=" ".join(filter(None, (_class_of(column), "tv-rare" if index in rare else ""))) or None,
        )
        for index, column in enumerate(columns)
    )
    table = element(
        "table",
        caption,
        element("thead", element("tr", heads)),
        element("tbody", _rows(block, carried, positions, first, style.codes)),
        _foot(folded, positions, columns),
        class_="tv-grid",
    )
    label = ": ".join(part for part in (line(style.caption), title or "table") if part)  # sections have their title
    region = element("div", table, class_="tv-scroll", role="group", tabindex=0, aria_label=label)
    elsewhere = Markup()
    omitted = len(block.rows) - len(carried)
    if omitted and (style.has_script or folded.rest is None):
        how = element("code", style.command, class_="tv-command") if style.command else "--format csv"
        elsewhere = element("p", f"{omitted:,} more rows are not here; all of them: ", how, class_="tv-elsewhere")
    kind = "tv-table" if style.has_script else "tv-table tv-with-rest"
    heading = element("h3", title) if title else ""
    return element("div", heading, region, elsewhere, class_=kind)


def _rows(
    block: Grid, carried: tuple[Row, ...], positions: tuple[int, ...], first: int, codes: frozenset[str]
) -> Markup:
    columns = [block.columns[position] for position in positions]
    cells: list[list[Markup]] = []
    for position, column in zip(positions, columns, strict=True):
        values = [row[position] for row in carried]
        if column.unit in _TEXTS:
            is_head = not cells and column.unit == "text"
            cells.append(_texts([cell_text(value, column) for value in values], column, codes, is_head=is_head))
        else:
            ratios = bar_ratios(column, [row[position] for row in block.rows]) if column.bar else (None,) * len(values)
            cells.append([_cell(value, column, ratio) for value, ratio in zip(values, ratios, strict=False)])
    return joined(
        element("tr", joined(row), class_="tv-more" if index >= first else None)
        for index, row in enumerate(zip(*cells, strict=True))
    )


def _class_of(column: Column) -> str | None:
    return None if column.unit in _TEXTS else "tv-number"


def _texts(texts: list[str], column: Column, codes: frozenset[str], *, is_head: bool) -> list[Markup]:
    """Draw a column of texts: names on one line that differ where the names do, sentences broken into lines."""
    whole = [shown(text) for text in texts]
    # A sentence says nothing without its middle.
    short = shorten_apart(whole, _LONGEST) if column.shorten and not any(map(_is_prose, whole)) else whole
    tag, scope = ("th", "row") if is_head else ("td", None)
    drawn = []
    for text, all_of_it in zip(short, whole, strict=True):
        if text != all_of_it:
            content: Markup = element("span", text, class_="tv-name", title=all_of_it, tabindex=0)
        elif all_of_it in codes and _CODE.fullmatch(all_of_it):
            content = element("a", all_of_it, href=f"#finding-{all_of_it}")
        else:
            content = escape(all_of_it)
        drawn.append(element(tag, content, scope=scope, class_="tv-wide" if len(text) > _LONGEST else None))
    return drawn


def _is_prose(text: str) -> bool:
    """Return whether a long text is a sentence and not a name: mostly words of letters."""
    words = text.split()
    return len(text) > _LONGEST and len(words) > 4 and sum(map(str.isalpha, words)) > len(words) * 0.6


def _cell(value: Value, column: Column, ratio: float | None) -> Markup:
    base = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    drawn = _bar(ratio, signed=column.signed) if ratio is not None and base is not None else ""
    direction = ""
    if column.better and base:
        direction = " tv-gain" if (base < 0) == (column.better == "lower") else " tv-loss"
    kind = f"tv-number{direction}{' tv-barred' if drawn else ''}"
    text = shown(cell_text(value, column))
    return element("td", drawn, text, class_=kind, data_value="" if base is None else repr(base))


def _bar(ratio: float, *, signed: bool) -> Markup:
    length = min(abs(ratio), 1.0) * (_BAR / 2 if signed else _BAR)
    start = (_BAR / 2 - (length if ratio < 0 else 0)) if signed else 0
    rect = element("rect", x=number(start), width=number(length), height=8)
    axis = element("path", d=f"M{_BAR // 2} 0V8", class_="tv-axis") if signed else ""
    return element("svg", rect, axis, class_="tv-bar", viewBox=f"0 0 {_BAR} 8", aria_hidden="true")


def _foot(folded: ShownRows, positions: tuple[int, ...], columns: list[Column]) -> Markup:
    """Draw the row for the folded rows: their number and their sums."""
    if folded.rest is None:
        return Markup()
    rest: Row = folded.rest
    label = next((position for position, column in enumerate(columns) if column.unit == "text"), 0)
    cells = [
        element("th", f"other ({folded.hidden:,})", scope="row")
        if index == label
        else element(
            "td",
            "" if rest[position] is None else shown(format_value(rest[position], column.unit)),
            class_=_class_of(column),
        )
        for index, (position, column) in enumerate(zip(positions, columns, strict=True))
    ]
    return element("tfoot", element("tr", joined(cells)), class_="tv-rest")


def candidates(verdict: Verdict, codes: frozenset[str] = frozenset()) -> Markup:
    """Draw a table of the candidates for the verdict; empty if there are none."""
    if not verdict.candidates:
        return Markup()
    style = GridStyle(caption="What may take the time, and how sure that is", slug="why", codes=codes)
    return grid(candidates_grid(verdict), style)


def block(item: Block, style: GridStyle) -> Markup:
    """Draw a block of any kind; ``style`` is for tables."""
    match item:
        case Facts():
            return facts(item.facts, style.slug)
        case Grid():
            return grid(item, style)
        case Bars():
            return bars(item, style.slug)
        case Timeline():
            return timeline(item)
        case Series():
            return series(item)
        case Prose():
            return element("p", prose(item.text))
