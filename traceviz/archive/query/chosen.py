"""Which traces of an archive are meant: by the beginning of their ids, or by a condition on the catalogue."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceviz.archive.query.where import where
from traceviz.errors import UsageError

SHORTEST = 4
"""Digits of an id that are enough where only one trace begins with them."""
_LISTED = 4


def full_id(rows: pl.DataFrame, prefix: str) -> str:
    """The id that begins with ``prefix``.

    Raises:
        UsageError: no trace has such an id, or several have.
    """
    ids = rows["trace_id"].unique().sort()
    found = ids.filter(ids.str.starts_with(prefix.lower())).to_list() if len(prefix) >= SHORTEST else []
    if len(found) == 1:
        return str(found[0])
    if len(prefix) < SHORTEST:
        raise UsageError(f"{prefix!r} is too short for an id.", f"At least {SHORTEST} digits are needed.")
    if not found:
        raise UsageError(
            f"There is no trace {prefix!r}.", fix="List those that there are: traceviz archive list ARCHIVE"
        )
    shown = ", ".join(found[:_LISTED]) + (", ..." if len(found) > _LISTED else "")
    raise UsageError(f"{len(found)} traces begin with {prefix!r}: {shown}.", fix="Give more digits.")


def chosen(rows: pl.DataFrame, prefixes: Sequence[str], condition: str | None) -> list[str]:
    """Ids of the traces that are named, or that a condition is true of; in order.

    Args:
        rows: Rows of the catalogue to choose from.
        prefixes: Beginnings of ids.
        condition: An expression of SQL on the columns of the catalogue; of several ranks one is enough.

    Raises:
        UsageError: neither, or both, are given; no trace has such an id; the condition is none.
    """
    if bool(prefixes) == bool(condition):
        raise UsageError("Which traces are meant?", fix="Name their ids, or give --where: one of the two.")
    if condition:
        return sorted(set(where(rows, condition)["trace_id"]))
    return list(dict.fromkeys(full_id(rows, prefix) for prefix in prefixes))
