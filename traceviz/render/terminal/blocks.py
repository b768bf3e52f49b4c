"""Pictures of block characters as plain text: bars, the cells of a stacked bar, ratios over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_ZERO = " "
_AXIS = "│"
_UNMEASURED = "·"


def bar(share: float, width: int) -> str:
    """Draw a bar of ``share`` (0 to 1) of ``width`` cells, in eighths of a cell; any share above zero is visible."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0 and width > 0:
        eighths = max(eighths, 1)
    full, part = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[part] if part else "")


def bar_from_axis(change: float, width: int) -> str:
    """Draw a bar of ``change`` (-1 to 1) on one side of a central axis, in halves of a cell.

    ::

        ████│     -1
          ▐█│     -0.375
            │█▌    0.375
           ▕│     any change but zero is visible
    """
    half = (width - 1) // 2
    halves = round(min(abs(change), 1.0) * half * 2)
    full, part = divmod(halves, 2)
    if change < 0:
        drawn = ("▐" if part else "") + "█" * full or "▕"
        return drawn.rjust(half) + _AXIS
    drawn = "█" * full + ("▌" if part else "") or ("▏" if change > 0 else "")
    return " " * half + _AXIS + drawn


def cells_of(shares: Sequence[float], width: int) -> tuple[int, ...]:
    """Divide ``width`` cells by shares; the largest remainders are rounded up, so that the sum is right."""
    whole = max(math.fsum(shares), 1.0)
    exact = [share / whole * width for share in shares]
    cells = [math.floor(part) for part in exact]
    spare = min(round(math.fsum(exact)), width) - sum(cells)
    for index in sorted(range(len(exact)), key=lambda i: cells[i] - exact[i])[: max(spare, 0)]:
        cells[index] += 1
    return tuple(cells)


def resample(values: Sequence[float | None], slices: int) -> list[float | None]:
    """Average ``values`` into ``slices`` equal slices; ``None`` for slices without measurements."""
    count = len(values)
    result: list[float | None] = []
    for index in range(slices if count else 0):
        start = index * count // slices
        end = max(start + 1, (index + 1) * count // slices)
        result.append(mean(values[start:end]))
    return result


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the measured values; ``None`` if there are none."""
    measured = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(measured) / len(measured) if measured else None


def sparkline(values: Sequence[float | None], width: int) -> str:
    """Draw ratios over time, one block per slice: a space for zero, ``·`` for slices that were not measured."""
    return "".join(_block(value) for value in resample(values, width))


def _block(value: float | None) -> str:
    if value is None:
        return _UNMEASURED
    if value <= 0:
        return _ZERO
    return _LEVELS[math.ceil(min(value, 1.0) * len(_LEVELS)) - 1]
