"""Patterns in names, of which a small trace has few.

Polars compiles a pattern in 0.1 to 2 ms and remembers 32 of them, where the analyses of a trace ask for twice as many.
Python remembers all of them, and has searched a few names meanwhile. It is asked about plain ones only, of which both
say the same. A pattern of a user's is for polars alone: its time is linear, whatever the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import polars as pl

FEW = 256
"""Of more different names, polars is quicker."""
ROWS = 4_096
"""So it is of more rows."""
LONGEST = 200
"""Characters of a plain name, at most: Python's time may grow with their square."""


def matches(names: pl.Expr, pattern: str) -> pl.Expr:
    """Whether each of ``names``, all text, has ``pattern`` in it; null where there is no name."""
    return names.map_batches(lambda column: matching(column, pattern), pl.Boolean, is_elementwise=True)


def replaced(names: pl.Expr, pattern: str, text: str) -> pl.Expr:
    """``names`` with ``text`` in place of what first matches ``pattern``; its groups are ``${1}`` to ``${9}``."""
    return names.map_batches(lambda column: _replaced(column, pattern, text), pl.String, is_elementwise=True)


def extracted(names: pl.Expr, pattern: str, group: int) -> pl.Expr:
    """What a ``group`` of ``pattern`` matches in each of ``names``, null where nothing does."""
    return names.map_batches(lambda column: _extracted(column, pattern, group), pl.String, is_elementwise=True)


def matching(names: pl.Series, pattern: str) -> pl.Series:
    """:func:`matches` of a column."""
    few = _few(names)
    if few is None:
        return names.str.contains(pattern)
    search = _compiled(pattern).search
    return _column(names, few, {name: search(name) is not None for name in few.distinct}, pl.Boolean)


def _replaced(names: pl.Series, pattern: str, text: str) -> pl.Series:
    few = _few(names)
    if few is None:
        return names.str.replace(pattern, text)
    replace, template = _compiled(pattern).sub, re.sub(r"\$\{(\d)\}", r"\\g<\1>", text)
    return _column(names, few, {name: replace(template, name, count=1) for name in few.distinct}, pl.String)


def _extracted(names: pl.Series, pattern: str, group: int) -> pl.Series:
    few = _few(names)
    if few is None:
        return names.str.extract(pattern, group)
    search = _compiled(pattern).search
    answers = {name: found.group(group) if (found := search(name)) else None for name in few.distinct}
    return _column(names, few, answers, pl.String)


class _Few(NamedTuple):
    """Names of a short column, row by row, and those that differ, without the missing one."""

    rows: list[str | None]
    distinct: set[str]


def _few(names: pl.Series) -> _Few | None:
    """The ``names``, if they are few and plain."""
    if len(names) > ROWS:
        return None
    rows: list[str | None] = names.to_list()
    distinct = {name for name in set(rows) if name is not None}
    return _Few(rows, distinct) if len(distinct) <= FEW and _are_plain(distinct) else None


def _are_plain(names: set[str]) -> bool:
    """Whether they have neither line ends nor letters of which engines think differently, and all are short."""
    text = "".join(names)
    return text.isascii() and text.isprintable() and (len(text) <= LONGEST or max(map(len, names)) <= LONGEST)


def _column(
    names: pl.Series, few: _Few, answers: Mapping[str, bool | str | None], kind: type[pl.DataType]
) -> pl.Series:
    """The answer of each row; null where there is no name."""
    return pl.Series(names.name, [None if name is None else answers[name] for name in few.rows], dtype=kind)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of ours: the cache grows as far as there are some."""
    return re.compile(pattern)
