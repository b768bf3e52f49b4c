"""The place of a part of the run in the program: a function, and its line with the most time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.short_names import SCRIPT
from traceviz.analyses.derived.frames import bounds, having
from traceviz.analyses.derived.run_parts.main_process import MainProcess, is_own, saves, validates
from traceviz.analyses.derived.stacks.functions import function_words
from traceviz.analyses.derived.stacks.trees import Mask, StackTree, function_names
from traceviz.core.arrays.intervals import Array, IntervalSet

MOSTLY = 0.8
"""From this share of the time in hooks on, one name stands for all."""
MOST = 5
"""Maximum number of places per part."""
_OF_WHAT = {"saving": saves, "validation": validates}
"""Parts whose place is the outermost function with such a name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A function, or the name that a hook gives.

    Args:
        name: ``save_checkpoint (train.py:88)``, ``the script train.py (51.0 % of it in line 6)``, or ``torch.save``.
        time_ns: Time of the place within the part.
        samples: Number of samples behind ``time_ns``; ``None`` if a hook measured it.
        line: The function with its line of most time: ``save_checkpoint (train.py:88)``; empty if no line is known.
    """

    name: str
    time_ns: int
    samples: int | None
    line: str = ""


@dataclass(frozen=True, eq=False)
class MainSamples:
    """Samples of the main thread. Patterns search the names of its frames once for all parts of the run.

    Args:
        main: The process.
        tree: All stacks.
        places: Row in ``tree`` of the stack of each row of ``main.rows``; -1 if it is not known.
        lines: For each, the row in ``tree`` of the loop's line with work outside steps, or -1.
    """

    main: MainProcess
    tree: StackTree
    places: Array
    lines: Array

    @cached_property
    def own(self) -> Mask:
        """Frames that are functions of the program."""
        return is_own(self.tree)

    @cached_property
    def names(self) -> pl.DataFrame:
        """``frame, file, line, function`` of each frame."""
        names = self.tree.frames[["file", "line"]].with_columns(function_names(self.tree))
        return names.with_row_index("frame").cast({"frame": pl.Int64})


def find_places(part: str, time: IntervalSet, samples: MainSamples) -> tuple[Place, ...]:
    """Return the main thread's places in ``time``, the time of ``part``; the place with the most time first."""
    told: tuple[Place, ...] = ()
    phases = having(samples.main.phases, "kind", part)
    if phases.height:  # hooks name phases of this kind
        inside = phases.with_columns(pl.Series("time", time.overlap(*bounds(phases))))
        names = inside.group_by("name").agg(pl.col("time").sum()).filter(pl.col("time") > 0)
        ordered = names.sort("time", "name", descending=[True, False]).head(MOST)
        told = tuple(Place(name, spent, None) for name, spent in ordered.iter_rows())
    named = sum(place.time_ns for place in told)
    hook = told[0].name if told and told[0].time_ns >= MOSTLY * named else ""
    sampled = _find_sampled_places(part, time, samples, hook)
    return sampled if sampled and 2 * sum(place.time_ns for place in sampled) >= named else told


def find_leading_line(time: IntervalSet, samples: MainSamples) -> Place | None:
    """Return the innermost line of the program that leads to half of ``time``, or ``None``."""
    tree, rows = samples.tree, samples.main.rows
    inside = np.where(samples.places >= 0, time.overlap(*bounds(rows)), 0)
    if not inside.any():
        return None
    own = np.zeros(tree.parent.size, np.int64)
    np.add.at(own, samples.places[samples.places >= 0], inside[samples.places >= 0])
    total = tree.totals(own)
    leads = np.flatnonzero((2 * total >= time.total) & samples.own)
    if not leads.size:
        return None
    inner = int(leads[np.lexsort((-leads, total[leads]))[0]])  # on ties the inner one, which has a higher row
    row = tree.frames.row(inner, named=True)
    where = row["file"] if row["line"] is None else f"{row['file']}:{row['line']}"
    name = where if row["function"] == SCRIPT else f"{row['function']} ({where})"  # the time is for the line only
    return Place(name, int(total[inner]), None, name)


def _find_sampled_places(part: str, time: IntervalSet, samples: MainSamples, hook: str) -> tuple[Place, ...]:
    """Return places by samples. Places without a function of the program get the name of the hook."""
    rows = samples.main.rows
    inside = time.overlap(*bounds(rows))
    if not inside.any():
        return ()
    spent = pl.DataFrame({"frame": _find_frames(part, samples), "time": inside, "samples": rows["samples"]})
    frames, is_named = spent["frame"].to_numpy(), np.zeros(spent.height, dtype=bool)
    if part in _OF_WHAT:  # the names of some functions show what the part is
        named = _OF_WHAT[part](samples.tree) & samples.own
        is_named = (frames >= 0) & np.append(named, [False])[frames]
    spent = spent.with_columns(pl.Series("hooked", ~is_named))
    lasted = pl.Series(rows["end_ns"] - rows["start_ns"])
    spent = spent.with_columns(pl.col("samples") * pl.col("time") / lasted)  # a row may be in several parts
    spent = spent.filter((pl.col("time") > 0) & (pl.col("frame") >= 0))
    lined = (
        spent.join(samples.names, on="frame")
        .group_by("hooked", "function", "file", "line")
        .agg(pl.col("time", "samples").sum())
    )
    lined = lined.sort("time", "line", descending=[True, False])
    places = lined.group_by("hooked", "function", "file", maintain_order=True).agg(
        pl.col("line").first(), pl.col("time").first().alias("of_line"), pl.col("time", "samples").sum()
    )
    ordered = places.sort("time", "file", "function", descending=[True, False, False]).head(MOST)
    found = []
    for row in ordered.iter_rows(named=True):
        name = function_words(row["function"], row["file"], row["line"], row["of_line"] / row["time"])
        name = f"{hook} in {name}" if hook and row["hooked"] else name
        line = function_words(row["function"], row["file"], row["line"], 1.0)
        found.append(Place(name, row["time"], round(row["samples"]), line))
    return tuple(found)


def _find_frames(part: str, samples: MainSamples) -> Array:
    """Return the frame for each sample: the outermost of the part, else the program's innermost, or -1.

    For occasional work of the loop, it is the function that the loop's line calls.
    """
    tree, own = samples.tree, samples.own
    frames = _of_samples(samples.places, tree.around(own))
    frames = np.where(frames >= 0, frames, samples.places)
    if part == "between":
        is_line = np.zeros(own.size, dtype=bool)
        is_line[samples.lines[samples.lines >= 0]] = True
        called = _of_samples(samples.places, tree.outermost(own & ~is_line & (tree.around(is_line) >= 0)))
        return np.where(called >= 0, called, frames)
    if part in _OF_WHAT:
        outer = _of_samples(samples.places, tree.outermost(_OF_WHAT[part](tree) & own))
        return np.where(outer >= 0, outer, frames)
    return frames


def _of_samples(places: Array, frames: Array) -> Array:
    """Return the frame of each sample's stack; -1 for samples without a stack."""
    return np.where(places >= 0, frames[np.maximum(places, 0)], -1) if frames.size else np.full(places.size, -1)
