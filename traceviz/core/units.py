"""The one place that turns base units into text.

Values travel as integers of nanoseconds, bytes and counts, and as ratios 0 to 1 (see :data:`Unit`).
Only a renderer calls the functions below.
"""

from __future__ import annotations

import math
import re
import signal
from dataclasses import dataclass
from typing import Literal, get_args

Unit = Literal[
    "ns", "bytes", "bytes/s", "joule", "per_second", "count", "ratio", "number", "factor", "id", "bool", "text"
]
"""Base units of displayed values.

``ns``, ``bytes``, ``bytes/s``, ``joule`` scale with their magnitude; ``per_second`` is a rate of counted things;
``count`` gets thousands separators; ``ratio`` is 0 to 1 and shown in percent; ``factor`` is a speed-up such as 2.5;
``number`` has no unit of its own; ``id`` is an integer that names something; ``bool`` and ``text`` are shown as they
are.
"""

UNITS: tuple[str, ...] = get_args(Unit)

Value = int | float | str | bool | None
"""Types of a displayed value; ``None`` means *not measured* and never zero."""

NOT_MEASURED = "-"
MINUS = "\N{MINUS SIGN}"

_EXACT = 1e15
"""From this value on, a float does not hold every digit."""
_LONG_TIME_STEPS = ((3_600_000_000_000, "h"), (60_000_000_000, "min"))
_LONG_TIME = 999_500_000_000
"""Times of 1,000 s and more are given in minutes and hours: many runs together take that long."""
_WRITTEN = (
    *(("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("min", 60_000_000_000)),
    *(("h", 3_600_000_000_000), ("s", 1_000_000_000), ("", 1_000_000_000)),
)
"""Units as users write them; a longer one comes before its own ending."""
_TIME_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_ENERGY_STEPS = ((10**9, "GJ"), (10**6, "MJ"), (10**3, "kJ"), (1, "J"), (1e-3, "mJ"))
_SIZE_STEPS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))


def format_value(value: Value, unit: Unit) -> str:
    """Return text for ``value`` given in base ``unit``, at most about nine characters wide.

    Raises:
        ValueError: ``unit`` is not one of :data:`Unit`.
    """
    if unit not in UNITS:
        raise ValueError(f"unknown unit {unit!r}")
    if value is None:
        return NOT_MEASURED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return _format_number(value, unit)


def format_change(value: Value, unit: Unit) -> str:
    """Return text for a change: :func:`format_value` with a sign, ``+1.20 ms`` or ``−66.5 %``; zero has no sign."""
    if value is None or isinstance(value, bool | str):
        return format_value(value, unit)
    text = format_value(abs(value), unit)
    return text if not value else f"{'+' if value > 0 else MINUS}{text}"


def _format_number(value: float, unit: Unit) -> str:
    match unit:
        case "ns":
            text = format_ns(value)
        case "bytes":
            text = _scaled(value, _SIZE_STEPS)
        case "bytes/s":
            text = _scaled(value, _SIZE_STEPS) + "/s"
        case "joule":
            text = _scaled(value, _ENERGY_STEPS)
        case "per_second":
            text = f"{format_number(value)}/s"
        case "ratio":
            text = format_ratio(value)
        case "factor":
            text = f"{_three_digits(value)}×"
        case "id":
            text = str(value)
        case _:
            text = format_number(value)
    return text


def format_ns(value: float) -> str:
    """Return a duration with three significant digits: ``1.23 ms``, ``45.6 s``, ``31.2 h``, ``−780 ns``."""
    if not abs(value) >= _LONG_TIME:
        return _scaled(value, _TIME_STEPS)
    size, name = next(step for step in _LONG_TIME_STEPS if abs(value) >= step[0] or step[1] == "min")
    return _with_minus(_in_step(value, (size, name)))


def parse_ns(text: str) -> int | None:
    """Parse a time that a user wrote, as nanoseconds: ``1.5`` and ``1.5 s``, ``1500ms``, ``20us``, ``10 min``, ``2 h``.

    Returns ``None`` if it is not such a time.
    """
    stripped = text.strip()
    suffix, size = next((suffix, size) for suffix, size in _WRITTEN if stripped.endswith(suffix))
    try:
        nanoseconds = round(float(stripped.removesuffix(suffix)) * size)
    except (ValueError, OverflowError):
        return None
    return nanoseconds if nanoseconds >= 0 else None


_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<prefix>[kKMGT]?)(?P<binary>i?)B)?")


def parse_bytes(text: str) -> int | None:
    """Parse a size that a user wrote, as bytes: ``64GB``, ``500 MB``, ``64GiB``, or without a unit.

    Returns ``None`` if it is not such a size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match["binary"] and not match["prefix"]):
        return None
    base = 1024 if match["binary"] else 1000
    size = float(match["number"]) * base ** " KMGT".index((match["prefix"] or " ").upper())
    return int(size) if math.isfinite(size) else None


def format_limit(seconds: float) -> str:
    """Return a limit as users write it: ``90 s``, ``10 min``, ``1.5 h``; whole minutes, and halves of hours."""
    for size, name, part in ((3600, "h", 1800), (60, "min", 60)):
        if seconds >= size and seconds % part == 0:
            return f"{seconds / size:g} {name}"
    return f"{seconds:g} s"


@dataclass(frozen=True, slots=True)
class Scale:
    """Divisor of the values of one axis, and the name of the unit that they then have: ``1_000_000, "ms"``."""

    size: float
    name: str


def scale_of(largest: float, unit: Unit) -> Scale:
    """Return the scale of an axis whose largest value is ``largest``: one for all of its ticks."""
    match unit:
        case "ns" if abs(largest) >= _LONG_TIME:
            steps: tuple[tuple[float, str], ...] = _LONG_TIME_STEPS
        case "ns":
            steps = _TIME_STEPS
        case "bytes" | "bytes/s":
            steps = _SIZE_STEPS
        case "joule":
            steps = _ENERGY_STEPS
        case "ratio":
            return Scale(0.01, "%")
        case _:
            return Scale(1, {"factor": "×", "per_second": "/s"}.get(unit, ""))
    size, name = next((step for step in steps if abs(largest) >= step[0]), steps[-1])
    return Scale(size, name + "/s" * (unit == "bytes/s"))


def format_number(value: float) -> str:
    """Return a plain number: integers in full with thousands separators, others with three significant digits."""
    if not isinstance(value, int) and abs(value) >= _EXACT:
        return _with_minus(f"{value:.3g}")
    if isinstance(value, int) or value.is_integer() or abs(value) >= 999.5:
        return _with_minus(f"{value:,.0f}")
    return _with_minus(f"{value:.3g}")


def format_signal(number: int) -> str:
    """Return a signal as text: ``signal 9 (SIGKILL)``; without a name if this system has none for it."""
    name = next((known.name for known in signal.Signals if known.value == number), None)
    return f"signal {number}" + (f" ({name})" if name else "")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 steady step``, ``57 steady steps``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_speed(speedup: float) -> str:
    """Format a speed-up: ``2.79× faster``; one below 1 as its inverse, ``1.25× slower``."""
    is_faster = speedup >= 1
    return f"{format_value(speedup if is_faster else 1 / speedup, 'factor')} {'faster' if is_faster else 'slower'}"


def format_ratio(value: float) -> str:
    """Return a ratio in percent: ``12.3 %``. Nonzero values within 0.05 % of zero read ``<0.1 %``, ``−<0.1 %``."""
    if 0 < value < 0.0005:
        return "<0.1 %"
    if -0.0005 < value < 0:
        return f"{MINUS}<0.1 %"
    return _with_minus(f"{value * 100 or 0:.1f} %")


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    """Return ``value`` in the largest step that keeps at least one digit before the point."""
    position = next((index for index, (size, _) in enumerate(steps) if abs(value) >= size), len(steps) - 1)
    text = _in_step(value, steps[position])
    if position > 0 and abs(float(text.partition(" ")[0].replace(",", ""))) >= 1000:  # 999.95 rounds to 1,000
        text = _in_step(value, steps[position - 1])
    return _with_minus(text)


def _in_step(value: float, step: tuple[float, str]) -> str:
    size, name = step
    return f"{_three_digits(value / size, whole=size == 1 and isinstance(value, int))} {name}"


def _with_minus(text: str) -> str:
    """Return ``text`` with a typographic minus, which is as wide as a plus; a hyphen alone means not measured."""
    return MINUS + text[1:] if text.startswith("-") else text


def _three_digits(number: float, *, whole: bool = False) -> str:
    magnitude = abs(number)
    if magnitude == 0:
        return "0"
    if whole or magnitude >= 99.95:
        return f"{number:,.0f}"
    if magnitude >= 9.995:
        return f"{number:.1f}"
    return f"{number:.2f}"
