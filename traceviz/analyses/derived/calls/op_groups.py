"""The family and type of each distinct operator name."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.calls.op_names import parsed_ops
from traceviz.trace.names.op_families import op_family

_MEASURED = r"_(kernel_time|fence_before|fence_after)$"
"""Suffixes that ONNX Runtime appends to operator names for what it measures."""


def op_groups(names: pl.Series) -> pl.DataFrame:
    """Return columns ``text`` (as given), ``type`` and ``family`` of the distinct operator ``names``.

    Types are those of :func:`~traceviz.analyses.derived.calls.op_names.parsed_ops`. Families are those of
    :mod:`traceviz.trace.names.op_families`.
    """
    types = parsed_ops(names).select("text", pl.col("type").str.replace(_MEASURED, ""))
    families = {kind: op_family(kind) for kind in types["type"].unique()}
    return types.with_columns(
        pl.col("type").replace_strict(families, default=None, return_dtype=pl.String).alias("family")
    )
