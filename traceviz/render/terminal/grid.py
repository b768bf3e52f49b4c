"""Tables that fit: unimportant columns are dropped, names are cut in the middle, numbers are aligned with units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.text import Text

from traceviz.core.sanitize import sentence, visible
from traceviz.core.units import Value
from traceviz.render.rows import (
    ShownRows,
    bar_ratios,
    cell_text,
    is_in_points,
    is_share,
    number_of,
    shown_columns,
    shown_rows,
    telling_columns,
)
from traceviz.render.terminal.blocks import bar, bar_from_axis
from traceviz.render.terminal.lines import (
    GAIN_STYLE,
    INDENT,
    LOSS_STYLE,
    QUIET,
    aligned,
    pad,
    paragraph,
    shorten_apart,
    widest,
    wrap,
)
from traceviz.report import Column, Grid

_GAP = 2
_HEAD_LIMIT = 12
_JOINT = re.compile(r"(?<=[_/=.-])(?=.)|(?<=[a-z])(?=[A-Z])")
_LEAST_FOR_BARS = 60
_WIDE_PAGE = 100
_WIDE_BAR = 12
_NARROW_BAR = 8
_NAME_SHARE = 0.36
_OTHER_TEXT_LEAST = 14
_LEAST = 4
_SHORT_NAME = 14
_BEFORE_NAMES = 1
"""Up to this importance, names are shortened further before a column is dropped."""
_BEFORE_BARS = 2
"""Up to this importance, bars that only repeat a number are dropped before a column."""


@dataclass(frozen=True, slots=True)
class Track:
    """One column on the page.

    Args:
        column: The column of the grid.
        cells: Text of each row, units aligned; names in full.
        bars: A ratio for each row, signed for changes; empty if no bar is drawn.
        styles: Style of each row.
        width: Cells for the text.
        bar_width: Cells for the bar behind the text.
        least: Cells below which the text does not shrink while a less important column can be dropped instead.
        names_rows: True if this column names the rows.
    """

    column: Column
    cells: tuple[str, ...]
    bars: tuple[float, ...]
    styles: tuple[str, ...]
    width: int
    bar_width: int
    least: int
    names_rows: bool = False

    @property
    def is_text(self) -> bool:
        """True if the column is left-aligned and may be shortened."""
        return self.column.unit in {"text", "bool"}

    @property
    def total_width(self) -> int:
        """Cells for text and bar."""
        return self.width + (1 + self.bar_width if self.bars else 0)


def grid_lines(grid: Grid, width: int, top: int | None) -> list[Text]:
    """Return ``top`` rows of the table within ``width`` cells; hidden rows are counted, and summed if they add up."""
    if not shown_columns(grid):
        return []
    lines = paragraph(sentence(grid.title), width, first=" " * INDENT, style=QUIET)
    if not grid.rows:
        return [*lines, Text(" " * INDENT + "none", QUIET)]
    shown = shown_rows(grid, top)
    tracks = fit(_tracks(grid, shown, width), width - INDENT)
    if not tracks:
        return []
    tracks = [replace(track, cells=tuple(shorten_apart(track.cells, track.width))) for track in tracks]
    lines += [*_head(tracks), *(_line(tracks, row) for row in range(len(shown.rows)))]
    if shown.hidden and (shown.rest is None or not any(track.names_rows for track in tracks)):
        lines.append(Text(" " * INDENT + f"… and {shown.hidden:,} more", QUIET))
    elif shown.hidden:  # the sums of the hidden rows
        lines.append(_line(tracks, len(shown.rows)))
        lines[-1].stylize(QUIET)
    return lines


def shown_columns_at(grid: Grid, width: int) -> tuple[str, ...]:
    """Return the names of the columns that :func:`grid_lines` shows on a page of ``width`` cells, for all rows."""
    tracks = fit(_tracks(grid, ShownRows(grid.rows, 0, None), width), width - INDENT)
    return tuple(track.column.name for track in tracks)


def fit(tracks: list[Track], width: int) -> list[Track]:
    """Fit tracks into ``width`` cells: drop the least important, then bars of changes, then shorten names."""
    kept = list(tracks)
    while len(kept) > 1 and _line_width(kept) - sum(track.width - track.least for track in kept) > width:
        importance, droppable = max((track.column.importance, index) for index, track in enumerate(kept))
        if importance == 0:
            break
        if importance <= _BEFORE_BARS and any(map(_is_extra, kept)):
            kept = [replace(track, bars=()) if _is_extra(track) else track for track in kept]
        elif importance <= _BEFORE_NAMES and any(map(_is_long_name, kept)):
            kept = [replace(track, least=_SHORT_NAME) if _is_long_name(track) else track for track in kept]
        else:
            dropped = _pair_name(kept[droppable].column)
            kept = [track for track in kept if track.column.importance == 0 or _pair_name(track.column) != dropped]
    # Even the columns that always stay may not fit: then only the first one stays.
    while len(kept) > 1 and _line_width(kept) - sum(max(t.width - _LEAST, 0) for t in kept if t.is_text) > width:
        kept.pop()
    # Columns with free cells are widened if their headings would otherwise need a second line.
    shrunk = _shrink(kept, width)
    spare = width - _line_width(shrunk)
    roomy: list[Track] = []
    for track in shrunk:
        missing = cell_len(" ".join(visible(track.column.label).split())) - track.total_width
        granted = missing if 0 < missing <= spare else 0
        spare -= granted
        roomy.append(replace(track, width=track.width + granted))
    return roomy


def _pair_name(column: Column) -> str:
    """Return the same name for the base and the new value of one quantity: without one, the other says little."""
    return column.name.removeprefix("base_").removeprefix("new_")


def _is_long_name(track: Track) -> bool:
    return track.names_rows and track.least > _SHORT_NAME


def _is_extra(track: Track) -> bool:
    """Return whether the bar only repeats the number; a bar of shares shows parts of a whole."""
    return bool(track.bars) and not is_share(track.column)


def _shrink(tracks: list[Track], width: int) -> list[Track]:
    """Take cells from the widest text column until the line fits."""
    widths = [track.width for track in tracks]
    over = _line_width(tracks) - width
    texts = [index for index, track in enumerate(tracks) if track.is_text] or [0]
    for _ in range(max(over, 0)):
        roomy = [index for index in texts if widths[index] > tracks[index].least] or texts
        widest = max(roomy, key=lambda index: widths[index])
        widths[widest] = max(widths[widest] - 1, 1)
    return [replace(track, width=size) for track, size in zip(tracks, widths, strict=True)]


def _line_width(tracks: list[Track]) -> int:
    return sum(track.total_width for track in tracks) + _GAP * (len(tracks) - 1)


def _tracks(grid: Grid, shown: ShownRows, width: int) -> list[Track]:
    """Return a track for each readable column that is not empty."""
    positions = telling_columns(grid, shown)
    texts = [index for index in positions if grid.columns[index].unit == "text"]
    names = [index for index in texts if grid.columns[index].shorten] or texts
    name = min(names, key=lambda index: grid.columns[index].importance, default=None)
    return [_track(grid, shown, index, width, names_rows=index == name) for index in positions]


def _track(grid: Grid, shown: ShownRows, index: int, width: int, *, names_rows: bool) -> Track:
    column = grid.columns[index]
    values = [row[index] for row in shown.rows]
    # The row of the sums of hidden rows is blank in columns without a sum.
    rest = [shown.rest[index]] if shown.rest is not None else []
    if is_in_points(column):
        cells = [
            "" if rest == [None] and n == len(values) else cell_text(v, column) for n, v in enumerate([*values, *rest])
        ]
    elif names_rows and rest:
        cells = [*aligned(values, column.unit), f"other ({shown.hidden:,})"]
    elif rest == [None]:
        cells = [*aligned(values, column.unit, signed=column.signed), ""]
    else:
        cells = aligned([*values, *rest], column.unit, signed=column.signed)
    values += rest
    is_text = column.unit in {"text", "bool"}
    text_width = min(max(widest(cells), widest(_head_words(column))), width)
    least = int(width * _NAME_SHARE) if names_rows else _OTHER_TEXT_LEAST
    return Track(
        column,
        cells=tuple(cells),
        bars=bar_ratios(column, values) if column.bar and width >= _LEAST_FOR_BARS else (),
        styles=tuple(_style(column, value) for value in values),
        width=text_width,
        bar_width=(_WIDE_BAR if width >= _WIDE_PAGE else _NARROW_BAR) + column.signed,  # the axis takes a cell
        least=min(text_width, least) if is_text and column.shorten and not _are_dates(cells) else text_width,
        names_rows=names_rows,
    )


def _are_dates(cells: Sequence[str]) -> bool:
    """Return whether the cells are dates, which say nothing if they are cut."""
    dates = [cell[:4].isdigit() and cell[4:5] == cell[7:8] == "-" and cell[5:7].isdigit() for cell in cells]
    return any(dates) and all(date or len(cell) < _LEAST for date, cell in zip(dates, cells, strict=True))


def _style(column: Column, value: Value) -> str:
    """Return the colour of a change; its sign has the same meaning."""
    number = number_of(value)
    if not number or not column.signed or not column.better:
        return ""
    return GAIN_STYLE if (number > 0) == (column.better == "higher") else LOSS_STYLE


def _head_words(column: Column, limit: int = _HEAD_LIMIT) -> list[str]:
    """Return the words of a heading, limited to ``limit`` cells; longer ones break, if possible between name parts."""
    return [piece for word in visible(column.label).split() for piece in _pieces(word, limit)] or [""]


def _pieces(word: str, limit: int) -> list[str]:
    """Split ``gpu_keras_input_bound`` into ``gpu_keras_`` and ``input_bound``; cut longer parts at the limit."""
    pieces: list[str] = []
    for part in _JOINT.split(word) if cell_len(word) > limit else [word]:
        if pieces and cell_len(pieces[-1] + part) <= limit:
            pieces[-1] += part
        else:
            pieces += wrap(part, limit)
    return pieces


def _head(tracks: list[Track]) -> list[Text]:
    """Return the headings, broken into as many lines as the longest needs at its column's width."""
    widths = [track.total_width for track in tracks]
    heads = [wrap(" ".join(_head_words(track.column, size)), size) for track, size in zip(tracks, widths, strict=True)]
    height = max(len(head) for head in heads)
    lines: list[Text] = []
    for level in range(height):
        line = Text(" " * INDENT)
        for position, (track, head) in enumerate(zip(tracks, heads, strict=True)):
            text = head[level - height + len(head)] if level >= height - len(head) else ""
            line.append(" " * (_GAP if position else 0))
            right = not track.is_text and not track.bars
            line.append(pad(text, track.total_width, right=right), QUIET)
        lines.append(line)
    return lines


def _line(tracks: list[Track], row: int) -> Text:
    line = Text(" " * INDENT)
    for position, track in enumerate(tracks):
        line.append(" " * (_GAP if position else 0))
        line.append(pad(track.cells[row], track.width, right=not track.is_text), track.styles[row])
        if track.bars:
            drawn = (bar_from_axis if track.column.signed else bar)(track.bars[row], track.bar_width)
            line.append(" " + pad(drawn, track.bar_width), track.styles[row] or "cyan")
    return line
