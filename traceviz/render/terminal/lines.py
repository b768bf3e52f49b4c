"""Lines of styled text: measuring, shortening and wrapping by terminal cells, and printing."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from os.path import commonprefix

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from traceviz.core.sanitize import visible
from traceviz.core.units import Unit, Value, format_change, format_value
from traceviz.render.text import ELLIPSIS, simplify_signature
from traceviz.report import Severity

INDENT = 2
STRONG = "bold"
QUIET = "dim"
TITLE = "bold"
SEVERITY_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}
SEVERITY_MARK = {Severity.ERROR: "!!", Severity.WARNING: "! ", Severity.INFO: "i "}
FINE_STYLE = "bold green"
GAIN_STYLE, LOSS_STYLE = "green", "red"
_SCALED_UNITS = frozenset({"ns", "bytes", "bytes/s", "joule", "per_second", "ratio"})
_NUMBER_LIMIT = 20
_WORDS_LIMIT = 40
_LEAST_NUMBERED = 12
"""Cells for a start of a name and its number."""
_BREAK = re.compile(r"(?<!\d) | (?!(?:%|[nµm]?s|min|h|[kMGT]?B|[mkMG]?J)(?!\w))")
"""Places where a line may be broken: at spaces, but not between a number and its unit."""


def clip(text: str, width: int) -> str:
    """Return the longest start of ``text`` that fits ``width`` cells. ``text`` is already :func:`visible`."""
    used = 0
    for index, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return text[:index]
    return text


def shorten(name: str, width: int) -> str:
    """Shorten ``name`` to ``width`` cells: simplify C++ signatures, then replace the middle with ``…``."""
    text = visible(name)
    if cell_len(text) <= width:
        return text
    text = simplify_signature(text)
    if cell_len(text) <= width:
        return text
    start = (width - 1) * 3 // 5
    end = clip(text[::-1], width - 1 - start)[::-1]
    return (clip(text, start) + ELLIPSIS + end) if width > 0 else ""


def shorten_apart(names: Sequence[str], width: int) -> list[str]:
    """Shorten all names by :func:`shorten`; names that would then look equal show their difference instead.

    The common start of ``elementwise_kernel<128, 2, Copy<...>>`` and ``elementwise_kernel<128, 2, Multiply<...>>`` is
    cut short, so that ``Copy`` and ``Multiply`` stay visible. Names whose differences have no room are numbered.
    """
    shown = [shorten(name, width) for name in names]
    for plain in (simplify_signature, simplify_signature, str, str):
        looks = _looks(names, shown)
        if all(len(alike) == 1 for alike in looks.values()):
            return shown
        shown = [
            _from_difference(name, looks[look], width, plain) if len(looks[look]) > 1 else look
            for look, name in zip(shown, names, strict=True)
        ]
    if width < _LEAST_NUMBERED:
        return shown
    numbers = {name: n for alike in _looks(names, shown).values() if len(alike) > 1 for n, name in enumerate(alike, 1)}
    return [
        shorten(look, width - len(f" ({numbers[name]})")) + f" ({numbers[name]})" if name in numbers else look
        for look, name in zip(shown, names, strict=True)
    ]


def _looks(names: Sequence[str], shown: Sequence[str]) -> dict[str, dict[str, None]]:
    """Return the different names behind each look, in order. Names that are equal when visible count as one."""
    looks: dict[str, dict[str, None]] = {}
    for look, name in zip(shown, names, strict=True):
        looks.setdefault(look, {})[name] = None
    return looks


def _from_difference(name: str, alike: Iterable[str], width: int, plain: Callable[[str], str]) -> str:
    """Cut ``name`` where it starts to differ from the names in ``alike``, and keep a little of its start."""
    common = len(commonprefix([plain(visible(other)) for other in alike]))  # noqa: RUF071 (no paths)
    text = plain(visible(name))
    start = clip(text, width * 2 // 5)
    if not len(start) < common < len(text) or width < _LEAST_NUMBERED:
        return shorten(name, width)
    room = width - cell_len(start) - 1
    rest = text[common:]
    return start + ELLIPSIS + (rest if cell_len(rest) <= room else clip(rest, room - 1) + ELLIPSIS)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Pad ``text`` with spaces to ``width`` cells, on its right or, with ``right``, so that it is right-aligned."""
    fill = " " * max(0, width - cell_len(text))
    return fill + text if right else text + fill


def wrap(text: str, width: int) -> list[str]:
    """Break ``text`` into lines of at most ``width`` cells; longer words are cut."""
    lines: list[str] = []
    line = ""
    for word in _BREAK.split(text):
        rest = word
        if line and cell_len(line) + 1 + cell_len(rest) <= width:
            line = f"{line} {rest}"
            continue
        if line:
            lines.append(line)
        while cell_len(rest[: 4 * width]) > width or cell_len(rest) > width:  # measure only the start of a long text
            part = clip(rest, width)
            lines.append(part)
            rest = rest[len(part) :]
        line = rest
    return [*lines, line] if line else lines


def paragraph(text: str, width: int, *, first: str = "", style: str = "", first_style: str = "") -> list[Text]:
    """Wrap ``text`` to ``width`` cells, with ``first`` before the first line and the others indented by its width."""
    hang = cell_len(first)
    lines = wrap(text, width - hang)
    starts = [(first, first_style), *[(" " * hang, "")] * (len(lines) - 1)]
    return [Text.assemble(start, (line, style)) for start, line in zip(starts, lines, strict=True)] if lines else []


def widest(texts: Iterable[str]) -> int:
    """Return the cells of the widest of ``texts``, 0 for none."""
    return max(map(cell_len, texts), default=0)


def aligned(values: Sequence[Value], unit: Unit, *, signed: bool = False) -> list[str]:
    """Return text for each value; units of a column have equal width, so that digits line up.

    Text in a column of numbers gives the reason for a missing one (``crashed: out of memory``), and stays unchanged.
    """
    texts = [visible((format_change if signed else format_value)(value, unit)) for value in values]
    if unit == "text":
        return texts
    if unit == "number" and any("." in text for text in texts):
        # 4.89, 14.6 and 4.00: a whole value among measured numbers is not exact
        texts = [
            f"{value:.2f}" if isinstance(value, float) and text == f"{value:.0f}" and abs(value) < 10 else text
            for value, text in zip(values, texts, strict=True)
        ]
    words = [isinstance(value, str) for value in values]
    if unit in _SCALED_UNITS:
        widths = [0 if is_word else _unit_width(text) for text, is_word in zip(texts, words, strict=True)]
        unit_width = max(widths, default=0)
        texts = [
            text if is_word else text + " " * (unit_width - width)
            for text, width, is_word in zip(texts, widths, words, strict=True)
        ]
    return [
        shorten(text, _WORDS_LIMIT if is_word else _NUMBER_LIMIT) for text, is_word in zip(texts, words, strict=True)
    ]


def _unit_width(text: str) -> int:
    """Return the cells of the space and unit after a number; 0 for a dash, which aligns with the digits."""
    number, space, unit = text.rpartition(" ")
    return cell_len(space + unit) if number else 0


def rule(title: str, width: int, aside: str = "") -> Text:
    """Return a section's heading: the title, a thin line, and ``aside`` at the right if it fits."""
    name = shorten(title, width - 4)
    left = width - cell_len(name) - 1
    tail = f" {visible(aside)}" if aside and cell_len(visible(aside)) + 5 <= left else ""
    return Text.assemble((name, TITLE), (" " + "─" * (left - cell_len(tail)), QUIET), (tail, QUIET))


def to_text(lines: Iterable[Text], *, color: bool) -> str:
    """Convert lines to text, with ANSI styles if ``color`` is true; the environment has no effect."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        color_system="256" if color else None,
        force_terminal=color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    trimmed = [line.copy() for line in lines]
    for line in trimmed:
        line.rstrip()
    if trimmed:  # in one call: each call of rich takes half a millisecond
        console.print(Text("\n").join(trimmed), soft_wrap=True)
    return stream.getvalue()
