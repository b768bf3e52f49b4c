"""Meaning of a stack for its time: the activity of the innermost frames, and the purpose.

::

    train.py:90 main
      train.py:41 save_checkpoint       purpose: saving
        json/__init__.py:179 dump
          fsync                         activity: input and output

The rules are data, ``data/stack_kinds.toml``: patterns of names, with a version. Other frames count as Python of the
program, or as computing if a numeric library runs.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
import polars as pl

from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import Mask, Rows, nearest, topmost

StackKind = Literal[
    "input",
    "saving",
    "logging",
    "import",
    "compilation",
    "collective",
    "device_wait",
    "serialization",
    "io",
    "sleep",
    "lock",
    "gil",
    "wait",
    "compute",
    "native",
    "python",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thread activity: stable key, label within a sentence, and meaning."""

    key: StackKind
    label: str
    meaning: str


KINDS: tuple[Kind, ...] = (
    Kind("input", "input", "the next batch is read, decoded, put together, or waited for"),
    Kind("saving", "saving", "a checkpoint or a model is written"),
    Kind("logging", "logging", "messages, metrics or a progress bar are written"),
    Kind("import", "imports", "modules are imported"),
    Kind("compilation", "compilation", "the framework traces or compiles a program"),
    Kind("collective", "collectives", "ranks exchange data, or wait for each other"),
    Kind("device_wait", "waits for the device", "the program waits for a result of the device"),
    Kind("serialization", "serialization", "objects are turned into bytes or text, or back: pickle, JSON, copies"),
    Kind("io", "input and output", "files, pipes or sockets are read, written or flushed to disk"),
    Kind("sleep", "sleep", "the thread sleeps"),
    Kind("lock", "locks and queues", "the thread waits for a lock, a queue, another thread or process"),
    Kind("gil", "waits for the GIL", "the thread wants to run Python, and waits until another thread lets it"),
    Kind("wait", "waits", "the thread uses no processor, and nothing says what it waits for"),
    Kind("compute", "computing", "a numeric library computes"),
    Kind("native", "native code", "native code of the program or a library runs"),
    Kind("python", "Python", "the program's own Python runs"),
)
"""All kinds, purposes first."""
KIND_LABELS: dict[str, str] = {kind.key: kind.label for kind in KINDS}
WAITS: frozenset[StackKind] = frozenset({"io", "sleep", "lock", "gil", "wait", "device_wait", "collective"})
"""Kinds in which a thread makes no progress."""

OFF_CORE = "off-core"
"""Frame of a thread that ran on no core, in traces whose profiler samples only threads that run."""
UNKNOWN_CODE = "unknown-code"
"""Frame of compiled code without a name."""
INTERPRETER = "python-interpreter"
"""Frame of Python's interpreter in stacks of compiled code, which do not show the Python function."""

ORIGIN_CALLED = "native"
"""Origin of compiled code: functions that Python called, with only their names known."""
STANDARD = "standard"
"""Origin of Python's own library."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The patterns of ``data/stack_kinds.toml``, each list joined into one pattern.

    Args:
        imports: Frames of Python's import.
        wrappers: Frames that enclose other code, and have a purpose only for their own time.
        not_purposes: Frames that resemble a purpose but have none.
        purposes: Kind, pattern, and whether it applies only to functions of the program itself.
        activities: Kind and pattern of innermost frames; the first match decides.
    """

    imports: str
    wrappers: str
    not_purposes: str
    purposes: tuple[tuple[str, str, bool], ...]
    activities: tuple[tuple[str, str], ...]


@cache
def catalogue() -> Catalogue:
    """Return the catalogue of this version of traceviz; it is read once."""
    path = resources.files("traceviz").joinpath("data", "stack_kinds.toml")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Catalogue(
        _either(data["imports"]),
        _either(data["wrappers"]),
        _either(data["not_purposes"]),
        tuple((rule["kind"], _either(rule["patterns"]), rule.get("of_program", False)) for rule in data["purpose"]),
        tuple((rule["kind"], _either(rule["patterns"])) for rule in data["activity"]),
    )


def _either(patterns: list[str]) -> str:
    return "|".join(patterns)


IDLE_SHARE = 0.1
"""In a call, a thread waited if its processor time is below this share of the time."""
STARVED_SHARE = 0.01
"""In its own Python, a thread does not wait, but others may keep it from running. It counts as waiting if its
processor time is below this share,"""
STARVED_SAMPLES = 5
"""over this many consecutive samples."""
BUSY_SHARE = 0.5
"""With more processor time than this share, a thread did not sleep or wait for a lock."""
_BUSY: frozenset[StackKind] = frozenset({"python", "serialization"})
"""Activities that use a processor; without processor time, they are waits. Libraries compute on their own threads."""


def frame_text(file: pl.Expr, function: pl.Expr) -> pl.Expr:
    """Return a frame as rules see it: ``file function``. The class is omitted, but calls keep their dotted name."""
    plain = function.str.replace(r"^.*[.>]([^.]+)$", "${1}")
    return pl.concat_str([file, pl.when(file == "").then(function).otherwise(plain)], separator=" ")


def with_purpose(frames: pl.DataFrame) -> pl.DataFrame:
    """Add the purpose of distinct frames (``file, function, origin``).

    Returns:
        ``frames`` with ``purpose``, null if unknown, and two flags that limit its effect on callees. ``alone``: callees
        are excluded (a progress bar encloses the iterable that it wraps). ``until_program``: the purpose ends when the
        program's own code runs again (an experiment tracker that calls the training function; not Python's ``logging``,
        which calls formatters and handlers of the program).
    """
    text, own = frame_text(pl.col("file"), pl.col("function")), pl.col("origin") == "program"
    meant = (pl.col("function") != "<module>") & ~text.str.contains(catalogue().not_purposes)
    rules = [
        pl.when(meant & text.str.contains(pattern) & (own if of_program else pl.lit(value=True))).then(pl.lit(kind))
        for kind, pattern, of_program in catalogue().purposes
    ]
    return frames.with_columns(
        pl.coalesce(rules).alias("purpose"),
        text.str.contains(catalogue().wrappers).alias("alone"),
        (pl.col("origin") == "library").alias("until_program"),
    ).with_columns((pl.col("until_program") & (pl.col("purpose") == "logging")).fill_null(value=False))


def with_activity(frames: pl.DataFrame) -> pl.DataFrame:
    """Add ``activity`` to distinct frames (``file, function, origin``): what a thread does in such a frame.

    It is null for compiled code and for functions of Python's own library that no rule knows, since the activity of
    the caller is more specific: a numeric library that checks its arguments computes.
    """
    text, own = frame_text(pl.col("file"), pl.col("function")), pl.col("origin") == "program"
    rules = [pl.when(text.str.contains(pattern) & ~own).then(pl.lit(kind)) for kind, pattern in catalogue().activities]
    # Python's own frames have a file
    compiled = (pl.col("file") == "") & (pl.col("origin") != ORIGIN_CALLED) & (pl.col("function") != INTERPRETER)
    rules.append(pl.when(compiled).then(pl.lit("native")))
    python = pl.when(~pl.col("origin").is_in([ORIGIN_CALLED, STANDARD])).then(pl.lit("python"))
    return frames.with_columns(pl.coalesce(*rules, python).alias("activity"))


def is_import() -> pl.Expr:
    """Return which frames (``file, function``) belong to Python's import."""
    return frame_text(pl.col("file"), pl.col("function")).str.contains(catalogue().imports)


def activity_seen(  # noqa: PLR0917 (columns of one row)
    activity: pl.Expr, state: pl.Expr, cpu_ns: pl.Expr, dur_ns: pl.Expr, samples: pl.Expr, is_call: pl.Expr
) -> pl.Expr:
    """Return a thread's activity, corrected if it was seen to wait for the GIL or to use no processor."""
    starved = (cpu_ns < STARVED_SHARE * dur_ns) & (samples >= STARVED_SAMPLES)
    unused = pl.when(is_call).then(cpu_ns < IDLE_SHARE * dur_ns).otherwise(starved)
    idle = pl.coalesce(pl.when(cpu_ns.is_not_null()).then(unused), state == "waiting").fill_null(value=False)
    idle &= (state != "running").fill_null(value=True)  # a running thread waits for a core that others use
    busy = (cpu_ns > BUSY_SHARE * dur_ns).fill_null(value=False)
    return (
        pl.when((state == "gil").fill_null(value=False))
        .then(pl.lit("gil"))
        .when(idle & activity.is_in(list(_BUSY)))
        .then(pl.lit("wait"))
        .when(busy & activity.is_in(["sleep", "lock"]))
        .then(pl.lit("python"))
        .otherwise(activity)
    )


def purpose_frames(parent: Rows, *, has: Mask, alone: Mask, until_program: Mask, program: Mask) -> Array:
    """Return, for each frame, the row of the frame whose purpose its time serves, or -1.

    This is the outermost frame with a purpose that extends to it::

        main > save_checkpoint > json.dump > write          saving, all of it
        main > tqdm.__iter__ > DataLoader.__next__          input: a bar encloses the iterable that it wraps
        main > tqdm.__iter__ > tqdm.update > write          logging: the bar's own work
        main > mlflow.patched_fit > train > forward         none: the program's own code runs again

    Args:
        parent: Row of the caller of each frame, which precedes it, or -1.
        has: Frames with a purpose.
        alone: Frames whose purpose is only for their own time.
        until_program: Frames whose purpose ends at the next frame of the program.
        program: Frames of the program.
    """
    reaches = has & ~alone
    outer = topmost(parent, reaches & ~until_program)
    bounded = nearest(parent, reaches & until_program)
    bounded = np.where(bounded > nearest(parent, program), bounded, -1)
    serves = np.where((bounded >= 0) & ((outer < 0) | (bounded < outer)), bounded, outer)
    return np.where((serves < 0) & has, np.arange(parent.size), serves)
