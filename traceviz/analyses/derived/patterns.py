"""Patterns in names, of which a small trace has few.

Polars compiles a pattern in 0.1 to 2 ms and remembers 32 of them, where the analyses of a trace ask for twice as many.
Python remembers all of them, and has searched a few names meanwhile. It is asked about plain ones only, of which both
say the same. A pattern of a user's is for polars alone: its time is linear, whatever the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

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
    return _column(names, few, lambda name: search(name) is not None, pl.Boolean)


def _replaced(names: pl.Series, pattern: str, text: str) -> pl.Series:
    few = _few(names)
    if few is None:
        return names.str.replace(pattern, text)
    replace, template = _compiled(pattern).sub, re.sub(r"\$\{(\d)\}", r"\\g<\1>", text)
    return _column(names, few, lambda name: replace(template, name, count=1), pl.String)


def _extracted(names: pl.Series, pattern: str, group: int) -> pl.Series:
    few = _few(names)
    if few is None:
        return names.str.extract(pattern, group)
    search = _compiled(pattern).search
    return _column(names, few, lambda name: found.group(group) if (found := search(name)) else None, pl.String)


def _few(names: pl.Series) -> list[str | None] | None:
    """The ``names``, if they are few and plain."""
    if len(names) > ROWS:
        return None
    few: list[str | None] = names.to_list()
    distinct = set(few)
    return few if len(distinct) <= FEW and all(name is None or _is_plain(name) for name in distinct) else None


def _is_plain(name: str) -> bool:
    """Whether it has neither line ends nor letters of which engines think differently, and is short."""
    return len(name) <= LONGEST and name.isascii() and name.isprintable()


def _column(
    names: pl.Series, few: Sequence[str | None], answer: Callable[[str], bool | str | None], kind: type[pl.DataType]
) -> pl.Series:
    answers = {name: None if name is None else answer(name) for name in set(few)}
    return pl.Series(names.name, [answers[name] for name in few], dtype=kind)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of ours: the cache grows as far as there are some."""
    return re.compile(pattern)
