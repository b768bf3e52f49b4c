"""Named values, aligned, in two columns if they fit."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from traceviz.core.sanitize import sentence, visible
from traceviz.core.units import NOT_MEASURED, format_value
from traceviz.render.terminal.lines import INDENT, QUIET, pad, paragraph, shorten, widest
from traceviz.report import Facts

_GAP = 4
_MOST_LINES = 3


def facts_lines(facts: Facts, width: int) -> list[Text]:
    """Return ``label  value`` pairs with aligned values; with two columns, read them line by line."""
    if not facts.facts:
        return []
    pairs = [(visible(fact.label), sentence(format_value(fact.value, fact.unit))) for fact in facts.facts]
    if len(pairs) > 1:
        halves = [_Column(pairs[0::2]), _Column(pairs[1::2])]
        if sum(half.width for half in halves) + _GAP <= width - INDENT:
            rows = ([half.cell(row) for half in halves if row < len(half.pairs)] for row in range(len(halves[0].pairs)))
            return [Text(" " * INDENT).append_text(Text(" " * _GAP).join(cells)) for cells in rows]
    value_width = min(widest([value for _, value in pairs]), width // 2)
    label_width = min(_Column(pairs).label_width, width - INDENT - 2 - value_width)
    lines: list[Text] = []
    for label, value in pairs:
        start = " " * INDENT + pad(shorten(label, label_width), label_width) + "  "
        text = shorten(value, _MOST_LINES * (width - cell_len(start)))
        lines += paragraph(text or NOT_MEASURED, width, first=start, first_style=QUIET)
    return lines


class _Column:
    """Pairs of label and value below each other, both padded to the widest."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self.label_width = widest([label for label, _ in pairs])
        self.width = self.label_width + 2 + widest([value for _, value in pairs])

    def cell(self, row: int) -> Text:
        """Return the pair at ``row``, padded to the common width."""
        label, value = self.pairs[row]
        start = pad(label, self.label_width) + "  "
        return Text.assemble((start, QUIET), pad(value, self.width - self.label_width - 2))
