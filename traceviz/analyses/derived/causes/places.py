"""Where in the program an event happened: the range, module, operator and line of Python around it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.call_tree import CallTree

MODULE = r"^nn\.Module: "
"""Python frames that are calls of a module of the model."""

_LIBRARY = (
    r"site-packages/|dist-packages/|/lib/python\d|^(torch|torchvision|transformers|jax|tensorflow|keras|numpy)/"
    r"|^(threading|contextlib|functools|importlib|multiprocessing|selectors|runpy|concurrent|asyncio|queue|socket)[/.]"
    r"|^<|^nn\.Module: |^\$<unknown>"
    r"|^\$(profiler|api|pjit|pxla|array|core|interpreter|traceback_util|builtins|threading)\b"
)
"""Python frames of libraries, which are not where a program can be changed."""
_TORCH_FRAME = r"^([^()]*\.py)\((\d+)\): (.*)$"
_JAX_FRAME = r"^\$([^ ]+:\d+) (.*)$"

PLACES = ("operator", "module", "range", "location")
"""Columns of :func:`places`."""

Mask = npt.NDArray[np.bool_]


def places(tree: CallTree) -> pl.DataFrame:
    """For each call, what is around it or is it; null where there is none of the kind.

    Args:
        tree: Calls with ``name``, ``category`` (of host operations) and ``source`` (the table), all text.

    Returns:
        ``operator``: the outermost operator of the framework; ``module``: the innermost ``nn.Module``; ``range``: the
        innermost range or annotation; ``location``: the innermost Python function outside of libraries, else the
        innermost one, as ``train.py:41 load``.
    """
    source, category, name = (tree.calls[column] for column in ("source", "category", "name"))
    python = (category == "python").fill_null(value=False)
    module = _mask(python & name.str.contains(MODULE))
    frame = _mask(python) & ~module
    own = frame & ~_mask(name.str.contains(_LIBRARY))
    range_ = _mask((source == "nvtx") | (category == "annotation").fill_null(value=False))
    operator = _mask((category == "op").fill_null(value=False))
    near_own, near_any = tree.nearest(own), tree.nearest(frame)
    line = np.where(near_own >= 0, near_own, near_any)
    return pl.DataFrame(
        {
            "operator": _names(name, tree.nearest(outermost(tree, operator))),
            "module": _names(name, tree.nearest(module)).str.replace(MODULE, ""),
            "range": _names(name, tree.nearest(range_)),
            "location": _names(name, line),
        }
    ).with_columns(located(pl.col("location")))


def outermost(tree: CallTree, selected: Mask) -> Mask:
    """Those of the ``selected`` calls that lie in no other of them."""
    nearest = tree.nearest(selected)
    around = np.where(tree.parent >= 0, nearest[tree.parent], -1)
    return np.asarray(selected & (around < 0))


def located(frame: pl.Expr) -> pl.Expr:
    """``train.py:41 load`` of the names that profilers give it: ``train.py(41): load``, ``$train.py:41 load``."""
    return frame.str.replace(_TORCH_FRAME, "${1}:${2} ${3}").str.replace(_JAX_FRAME, "${1} ${2}")


def _mask(values: pl.Series) -> Mask:
    return values.fill_null(value=False).to_numpy().astype(bool)


def _names(name: pl.Series, rows: npt.NDArray[np.int64]) -> pl.Series:
    """Names of the calls in ``rows``, null for -1."""
    if not name.len():
        return name
    return pl.DataFrame({"name": name[np.maximum(rows, 0)], "known": rows >= 0}).select(pl.when("known").then("name"))[
        "name"
    ]
