"""Where in the program a part of the run was: the function that stands for it, with the line in it that took most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds
from traceviz.analyses.derived.run_parts import words
from traceviz.analyses.derived.run_parts.chains import Chains, Flags
from traceviz.analyses.derived.run_parts.main_process import MainProcess
from traceviz.intervals import Array, IntervalSet

MOST = 5
"""So many places of a part are kept."""
_OF_WHAT = {"saving": words.saves, "validation": words.validates}
"""Parts whose place is the outermost function of that name."""
_MODULE = "<module>"


@dataclass(frozen=True, slots=True)
class Place:
    """A function, or what a hook names.

    Args:
        name: ``save_checkpoint (train.py:88)``, or ``torch.save``.
        time_ns: Its time within the part.
        samples: Samples behind that; ``None`` where a hook measured it.
    """

    name: str
    time_ns: int
    samples: int | None


@dataclass(frozen=True, slots=True)
class MainSamples:
    """Samples of the main thread.

    Args:
        main: The process.
        stacks: All stacks.
        positions: Position of the stack of each row of ``main.rows``.
        lines: Position of the line of the loop that does what steps do not, of each row.
    """

    main: MainProcess
    stacks: Chains
    positions: Array
    lines: Array


def places_of(part: str, time: IntervalSet, samples: MainSamples) -> tuple[Place, ...]:
    """Where the main thread was in ``time``, which is that of ``part``; the place with most time first."""
    sampled = _sampled(part, time, samples)
    told = _told(part, time, samples.main.phases)
    named = sum(place.time_ns for place in told)
    return sampled if sampled and 2 * sum(place.time_ns for place in sampled) >= named else told


def _sampled(part: str, time: IntervalSet, samples: MainSamples) -> tuple[Place, ...]:
    rows, stacks = samples.main.rows, samples.stacks
    inside = time.overlap(*bounds(rows))
    if not inside.any():
        return ()
    spent = pl.DataFrame({"frame": _frames(part, samples), "time": inside, "samples": rows["samples"]})
    spent = spent.filter((pl.col("time") > 0) & (pl.col("frame") < stacks.nobody))
    known = stacks.frames.select("function", "file", "line").with_row_index("frame").cast({"frame": pl.Int64})
    lined = spent.join(known, on="frame").group_by("function", "file", "line").agg(pl.col("time", "samples").sum())
    lined = lined.sort("time", "line", descending=[True, False])
    places = lined.group_by("function", "file", maintain_order=True).agg(
        pl.col("line").first(), pl.col("time", "samples").sum()
    )
    ordered = places.sort("time", "file", "function", descending=[True, False, False]).head(MOST)
    return tuple(
        Place(_name(row["function"], row["file"], row["line"]), row["time"], row["samples"])
        for row in ordered.iter_rows(named=True)
    )


def _frames(part: str, samples: MainSamples) -> Array:
    """Position of the frame that stands for each row: the outermost of that name, else the program's innermost."""
    stacks, positions = samples.stacks, samples.positions
    program = stacks.frames.select(words.is_program().alias("is"))["is"].to_numpy()
    anything = stacks.innermost(np.ones(stacks.nobody, dtype=bool))[positions]
    own = stacks.innermost(program)[positions]
    frames = np.where(own < stacks.nobody, own, anything)
    if part == "between":
        called = _called_by(samples, program)
        frames = np.where(called < stacks.nobody, called, frames)
    if part in _OF_WHAT:
        flags = stacks.frames.select(_OF_WHAT[part]().alias("is"))["is"].to_numpy()
        outer = stacks.outermost(flags & program)[positions]
        frames = np.where(outer < stacks.nobody, outer, frames)
    return frames


def _called_by(samples: MainSamples, program: Flags) -> Array:
    """The function of the program that a line of the loop calls; the line where it calls none."""
    stacks, lines, positions = samples.stacks, samples.lines, samples.positions
    chosen = np.unique(lines[lines < stacks.nobody])
    is_line = np.zeros(stacks.nobody, dtype=bool)
    is_line[chosen] = True
    around = stacks.outermost(is_line)  # the line of the loop around each frame, or the frame itself
    inside = program & ~is_line & (around[: stacks.nobody] < stacks.nobody)
    called = stacks.outermost(inside)[positions]
    return np.where(lines < stacks.nobody, np.where(called < stacks.nobody, called, lines), stacks.nobody)


def _told(part: str, time: IntervalSet, phases: pl.DataFrame) -> tuple[Place, ...]:
    """Names that hooks give to phases of this kind, with their time in the part."""
    own = phases.filter(pl.col("kind") == part)
    if not own.height:
        return ()
    inside = own.with_columns(pl.Series("time", time.overlap(*bounds(own))))
    names = inside.group_by("name").agg(pl.col("time").sum()).filter(pl.col("time") > 0)
    ordered = names.sort("time", "name", descending=[True, False]).head(MOST)
    return tuple(Place(name, spent, None) for name, spent in ordered.iter_rows())


def _name(function: str, file: str, line: int | None) -> str:
    where = file if line is None else f"{file}:{line}"
    return where if function == _MODULE else f"{function} ({where})"
