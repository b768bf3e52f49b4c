"""Python functions that a profiler recorded, parsed as frames from the names of ``torch.profiler`` and JAX's tracer.

::

    torch   train.py(41): decode_jpeg        <built-in function sleep>
    JAX     $train.py:41 decode_jpeg         $time sleep
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.frames import codes
from traceviz.analyses.derived.stacks.kinds import purpose_frames, with_activity, with_purpose
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import Codes, Mask, Rows, alike, nearest

_TORCH = r"^(?<file>[^()]*\.py)\((?<line>\d+)\): (?<function>.*)$"
_JAX = r"^\$(?<file>[^ ]+):(?<line>\d+) (?<function>.*)$"
_BUILT_IN = r"^<built-in (?:function|method) (?<function>\w+)"
_JAX_BUILT_IN = r"^\$(?<module>[\w.]+) (?<function>\w+)$"

_LIBRARY = (
    r"site-packages/|dist-packages/|^(torch|torchvision|torchaudio|transformers|jax|jaxlib|tensorflow|keras|numpy|PIL|scipy)/"
    r"|^(profiler|api|pjit|pxla|array|core|interpreter|traceback_util|compiler|mlir|partial_eval|linear_util)\.py$"
)
_STANDARD = (
    r"/lib/python\d[\d.]*/[^/]+\.py$|/lib/python\d[\d.]*/(json|logging|multiprocessing|concurrent|asyncio|importlib|http|email|urllib"
    r"|collections|ctypes|encodings|unittest|xml)/"
    r"|^(threading|contextlib|functools|queue|socket|selectors|runpy|subprocess|pickle|copy|random|builtins|tempfile"
    r"|shutil|os|posixpath|codecs|gzip|zipfile|weakref|abc|typing|enum|re|inspect|ast|dis|types|traceback|warnings"
    r"|statistics|struct|heapq|bisect|itertools|argparse|glob|pathlib|csv|datetime|time|signal|string|textwrap|tokenize)\.py$"
    r"|^(json|logging|multiprocessing|concurrent|asyncio|importlib|collections|http|urllib|email|xml)/|^<"
)
_PACKAGE = r"^.*(?:site-packages|dist-packages|/lib/python\d[\d.]*)/"
"""Prefix that is removed from file names, as in the sampler."""


def function_names(tree: CallTree) -> tuple[Codes, pl.DataFrame]:
    """Return, for each call, the row of its name, and the names as frames (:func:`function_frames`).

    Args:
        tree: Calls of Python functions of all threads, with ``name``.
    """
    names, first = alike(codes(tree.calls["name"]))
    return names, function_frames(tree.calls["name"].gather(first).cast(pl.String))


def function_meanings(tree: CallTree, names: Codes, frames: pl.DataFrame) -> tuple[Codes, pl.DataFrame]:
    """Return the meaning of the stack at each call.

    Args:
        tree: Calls of Python functions of all threads.
        names: For each call, the row of its name in ``frames``.
        frames: The names as frames (:func:`function_names`).

    Returns:
        For each call, the row of its meaning; and the meanings: ``kind, activity, inside, location, function, leaf``.
    """
    distinct = with_activity(with_purpose(frames))
    contexts = tree.contexts(names)  # calls with the same stack have the same meaning
    parent, names = contexts.parent, names[contexts.first]
    rows = np.arange(names.size)
    near = _nearest(parent, names, distinct["origin"] == "program")
    far = _nearest(parent, names, distinct["origin"] == "library")
    place = np.where(near >= 0, near, np.where(far >= 0, far, rows))
    outermost = purpose_frames(
        parent,
        has=distinct["purpose"].is_not_null().to_numpy()[names],
        alone=distinct["alone"].fill_null(value=False).to_numpy()[names],
        until_program=distinct["until_program"].fill_null(value=False).to_numpy()[names],
        program=(distinct["origin"] == "program").to_numpy()[names],
    )
    says = _nearest(parent, names, distinct["activity"].is_not_null())
    inside = (outermost >= 0) & (near >= outermost)
    columns = (names, names[place], _codes(distinct["purpose"], names, outermost))
    said, first = alike(*columns, _codes(distinct["activity"], names, says), inside.astype(np.int32))
    return said[contexts.of_call], _make_meanings(distinct, names, first, outermost, says, place, inside)


def _make_meanings(  # noqa: PLR0917 (rows of one tree)
    distinct: pl.DataFrame, names: Codes, contexts: Codes, outermost: Array, says: Array, place: Array, inside: Mask
) -> pl.DataFrame:
    """Return the meanings of :func:`function_meanings` for ``contexts``; the other arguments are rows by context."""
    purpose = _of_rows(distinct["purpose"], names, outermost[contexts])
    activity = _of_rows(distinct["activity"], names, says[contexts]).fill_null("python").alias("activity")
    texts = distinct.select(
        pl.when(pl.col("line").is_null())
        .then(pl.format("{} {}", "file", "function"))
        .otherwise(pl.format("{}:{} {}", "file", "line", "function"))
        .str.strip_chars(" ")
        .alias("location"),
        pl.format("{} {}", "file", "function").str.strip_chars(" ").alias("function"),
    )
    return pl.DataFrame(
        [
            pl.DataFrame([purpose, activity]).select(pl.coalesce("purpose", "activity").alias("kind")).to_series(),
            activity,
            pl.Series("inside", inside[contexts]),
            texts["location"].gather(names[place[contexts]]),
            texts["function"].gather(names[place[contexts]]),
            texts["location"].gather(names[contexts]).alias("leaf"),
        ]
    )


def _nearest(parent: Rows, names: Codes, selected: pl.Series) -> Rows:
    """Return, for each context, the innermost context with a ``selected`` name that is it or is around it, or -1."""
    if not selected.any():
        return np.full(names.size, -1)
    return np.arange(names.size) if selected.all() else nearest(parent, selected.to_numpy()[names])


def _codes(texts: pl.Series, names: Codes, rows: Array) -> Codes:
    """Return a number for the text of the name of each of ``rows``, or -1."""
    of_name = texts.rank("dense").cast(pl.Int32).fill_null(-1).to_numpy()
    return np.where(rows >= 0, of_name[names[rows]], np.int32(-1))


def _of_rows(texts: pl.Series, names: Codes, rows: Array) -> pl.Series:
    index = pl.Series(np.where(rows >= 0, names[rows], -1), dtype=pl.Int64)
    return texts.gather(index.set(index < 0, None))


def function_frames(names: pl.Series) -> pl.DataFrame:
    """Parse names of recorded functions as frames: ``name, file, line, function, origin``.

    Functions with only a name are compiled code; their ``file`` is empty.
    """
    frame = pl.DataFrame({"name": names})
    torch, jax = pl.col("name").str.extract_groups(_TORCH), pl.col("name").str.extract_groups(_JAX)
    called = pl.col("name").str.extract(_BUILT_IN, 1)
    jax_called = pl.col("name").str.extract_groups(_JAX_BUILT_IN)
    file = pl.coalesce(torch.struct.field("file"), jax.struct.field("file")).str.replace(_PACKAGE, "")
    whole = pl.coalesce(torch.struct.field("file"), jax.struct.field("file"), pl.lit(""))
    module_call = pl.concat_str([jax_called.struct.field("module"), jax_called.struct.field("function")], separator=".")
    function = pl.coalesce(
        torch.struct.field("function"), jax.struct.field("function"), called, module_call, pl.col("name")
    )
    origin = (
        pl.when(whole == "")
        .then(pl.lit("native"))
        .when(whole.str.contains(_STANDARD))
        .then(pl.lit("standard"))
        .when(whole.str.contains(_LIBRARY))
        .then(pl.lit("library"))
        .otherwise(pl.lit("program"))
    )
    line = pl.coalesce(torch.struct.field("line"), jax.struct.field("line")).cast(pl.Int32, strict=False)
    return frame.select(
        "name", file.fill_null("").alias("file"), line.alias("line"), function.alias("function"), origin.alias("origin")
    )
