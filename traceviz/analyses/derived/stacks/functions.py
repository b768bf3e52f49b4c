"""Where in the program time was, by function, with the line in it that has most."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.calls.short_names import IMPORTED, SCRIPT, script
from traceviz.core.units import format_ratio

FEW_SAMPLES = 30
"""A share that so few samples state is *about* that."""
STANDS_FOR = 0.9
"""A line with this share of a function's time is written as the function's place, without its share."""
_LINE = re.compile(r"(?s)^(?P<file>.+?):(?P<line>\d+) (?P<function>.+)$")
_ENDS_IN_LINE = re.compile(r":\d+$")
_SURE = 1.96


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the program, or of a library.

    Args:
        location: Its line with most of the time: ``train.py:41 decode_jpeg``.
        time_ns: Time in it.
        whole_ns: The time that it is a part of.
        samples: Samples behind ``time_ns``; ``None`` where it was recorded, and not sampled.
        of_samples: Samples behind ``whole_ns``.
        leaf: What it called for most of that time; may be the line itself.
        line_share: The line's part of the function's time.
    """

    location: str
    time_ns: int
    whole_ns: int
    samples: float | None
    of_samples: float | None
    leaf: str = ""
    line_share: float = 1.0

    @property
    def share(self) -> float:
        """Its part of the whole."""
        return self.time_ns / self.whole_ns if self.whole_ns else 0.0

    @property
    def words(self) -> str:
        """Its name for people: see :func:`function_words`."""
        match = _LINE.match(self.location)
        if match is None:
            return self.location
        file, function = match["file"].rpartition("/")[2], match["function"].rpartition(".")[2]
        return function_words(function, file, int(match["line"]), self.line_share)

    @property
    def share_words(self) -> str:
        """Its share for people: *about*, where few samples state it."""
        few = self.of_samples is not None and self.of_samples < FEW_SAMPLES
        return f"{'about ' if few else ''}{format_ratio(self.share)}"

    @property
    def interval(self) -> tuple[float, float] | None:
        """The share at least and at most, for 95 of 100 (Wilson's interval); ``None`` where it was not sampled."""
        return None if self.of_samples is None else wilson(self.share, self.of_samples)


def wilson(share: float, samples: float) -> tuple[float, float]:
    """Bounds of a share that ``samples`` samples state, for 95 of 100."""
    if samples <= 0:
        return 0.0, 1.0
    square = _SURE**2 / samples
    middle = (share + square / 2) / (1 + square)
    half = _SURE * math.sqrt(share * (1 - share) / samples + square / (4 * samples)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def placed(location: str) -> str:
    """A line within a sentence: ``decode_jpeg (train.py:41)`` of ``src/train.py:41 Images.decode_jpeg``.

    Code outside of any function is its line alone.
    """
    match = _LINE.match(location)
    if match is None:
        return location
    where, name = f"{match['file'].rpartition('/')[2]}:{match['line']}", match["function"].rpartition(".")[2]
    return where if name in {SCRIPT, IMPORTED} else f"{name} ({where})"


def without_module(frame: pl.Expr) -> pl.Expr:
    """Frames as people read them: ``train.py:41`` of ``train.py:41 <module>``, ``the script train.py`` without a line.

    For tables that are shown, which are short.
    """
    return frame.map_elements(line_words, return_dtype=pl.String)


def line_words(frame: str) -> str:
    """One such frame."""
    file, _, function = frame.partition(" <")
    if f"<{function}" not in {SCRIPT, IMPORTED}:
        return frame
    return file if _ENDS_IN_LINE.search(file) else script(file, f"<{function}")


def function_words(function: str, file: str, line: int | None, line_share: float) -> str:
    """A function within a sentence, with the line that has most of its time.

    ``decode_jpeg (train.py:41)`` where that is nearly all, ``decode_jpeg (train.py, 51.0 % of it in line 41)``
    otherwise; of code outside of functions ``the script train.py (line 41)``.
    """
    is_script = function in {SCRIPT, IMPORTED}
    name = script(file, function) if is_script else function
    stands = line_share >= STANDS_FOR
    if not file or line is None:
        return f"{name} ({file})" if file and not is_script else name
    if stands:
        return f"{name} (line {line})" if is_script else f"{name} ({file}:{line})"
    where = f"{format_ratio(line_share)} of it in line {line}"
    return f"{name} ({where})" if is_script else f"{name} ({file}, {where})"


def largest_function(rows: pl.DataFrame, whole_ns: int | None = None) -> Function | None:
    """The function with most time of rows of :func:`~traceviz.analyses.derived.stacks.sampled.time_by_stack`.

    Args:
        rows: Rows, as far as they are to be looked at.
        whole_ns: What its share is of; all of ``rows`` where not given.
    """
    found = functions(rows, whole_ns)
    return found[0] if found else None


def functions(rows: pl.DataFrame, whole_ns: int | None = None, most: int = 5) -> list[Function]:
    """The functions with most time of such rows, the largest first."""
    if not rows.height:
        return []
    total = int(rows["time_ns"].sum())
    whole = total if whole_ns is None else whole_ns
    samples = float(rows["samples"].sum()) if rows["samples"].null_count() < rows.height else None
    of_samples = None if samples is None else samples * whole / max(total, 1)
    lines = rows.group_by("function", "location", "leaf").agg(pl.col("time_ns", "samples").sum())
    lines = lines.with_columns(pl.col("time_ns").sum().over("function", "location").alias("of_line"))
    lines = lines.sort("of_line", "location", "time_ns", "leaf", descending=[True, False, True, False])
    sums = lines.group_by("function", maintain_order=True).agg(
        pl.col("location", "leaf", "of_line").first(), pl.col("time_ns", "samples").sum()
    )
    ordered = sums.sort("time_ns", "function", descending=[True, False]).head(most)
    columns = ["location", "leaf", "of_line", "time_ns", "samples"]
    return [
        Function(
            location,
            time,
            whole,
            None if samples is None else sampled,
            of_samples,
            leaf,
            of_line / time if time else 1.0,
        )
        for location, leaf, of_line, time, sampled in ordered[columns].iter_rows()
    ]
