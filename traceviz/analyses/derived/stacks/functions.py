"""Time by function of the program, with the line of each that has the most time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.calls.short_names import IMPORTED, SCRIPT, script
from traceviz.core.units import format_ratio

FEW_SAMPLES = 30
"""With fewer samples than this, a share is reported as *about* its value."""
STANDS_FOR = 0.9
"""A line with this share of a function's time is reported as the function's place, without its share."""
_LINE = re.compile(r"(?s)^(?P<file>.+?):(?P<line>\d+) (?P<function>.+)$")
_ENDS_IN_LINE = re.compile(r":\d+$")
_SURE = 1.96


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the program, or of a library.

    Args:
        location: Its line with the most time: ``train.py:41 decode_jpeg``.
        time_ns: Time in it.
        whole_ns: The base of its share.
        samples: Number of samples behind ``time_ns``; ``None`` if it was recorded, not sampled.
        of_samples: Number of samples behind ``whole_ns``.
        leaf: The callee with the most of that time; may be the line itself.
        line_share: Share of the line in the function's time.
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
        """Its share of ``whole_ns``."""
        return self.time_ns / self.whole_ns if self.whole_ns else 0.0

    @property
    def words(self) -> str:
        """Its name as text: see :func:`function_words`."""
        match = _LINE.match(self.location)
        if match is None:
            return self.location
        file, function = match["file"].rpartition("/")[2], match["function"].rpartition(".")[2]
        return function_words(function, file, int(match["line"]), self.line_share)

    @property
    def share_words(self) -> str:
        """Its share as text, with *about* if it is based on few samples."""
        few = self.of_samples is not None and self.of_samples < FEW_SAMPLES
        return f"{'about ' if few else ''}{format_ratio(self.share)}"

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the share (Wilson's interval); ``None`` if it was not sampled."""
        return None if self.of_samples is None else wilson(self.share, self.of_samples)


def wilson(share: float, samples: float) -> tuple[float, float]:
    """Return the 95 % confidence bounds of a share that is based on ``samples`` samples."""
    if samples <= 0:
        return 0.0, 1.0
    square = _SURE**2 / samples
    middle = (share + square / 2) / (1 + square)
    half = _SURE * math.sqrt(share * (1 - share) / samples + square / (4 * samples)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def placed(location: str) -> str:
    """Return a line within a sentence: ``decode_jpeg (train.py:41)`` for ``src/train.py:41 Images.decode_jpeg``.

    For code outside functions, return only the line.
    """
    match = _LINE.match(location)
    if match is None:
        return location
    where, name = f"{match['file'].rpartition('/')[2]}:{match['line']}", match["function"].rpartition(".")[2]
    return where if name in {SCRIPT, IMPORTED} else f"{name} ({where})"


def without_module(frame: pl.Expr) -> pl.Expr:
    """Shorten top-level frames: ``train.py:41`` for ``train.py:41 <module>``, ``the script train.py`` without a line.

    Use this only for displayed tables, which are short.
    """
    return frame.map_elements(line_words, return_dtype=pl.String)


def line_words(frame: str) -> str:
    """Apply :func:`without_module` to one frame."""
    file, _, function = frame.partition(" <")
    if f"<{function}" not in {SCRIPT, IMPORTED}:
        return frame
    return file if _ENDS_IN_LINE.search(file) else script(file, f"<{function}")


def function_words(function: str, file: str, line: int | None, line_share: float) -> str:
    """Return a function within a sentence, with the line that has the most of its time.

    ``decode_jpeg (train.py:41)`` if that is nearly all, ``decode_jpeg (train.py, 51.0 % of it in line 41)`` otherwise.
    Code outside functions becomes ``the script train.py (line 41)``.
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


def functions(rows: pl.DataFrame, whole_ns: int | None = None, most: int = 5) -> list[Function]:
    """Return the functions with the most time in these rows, the largest first."""
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
