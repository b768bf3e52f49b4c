"""Pattern search in names. A small trace has few names.

Polars compiles a pattern in 0.1 to 2 ms and caches 32 of them, but the analyses of a trace use twice as many. Python
caches all of them, and searches a few names in that time. Python is used only for plain names, for which both engines
agree. User patterns always go to polars, since its time is linear for every pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import polars as pl

FEW = 256
"""Maximum number of distinct names for Python; with more, polars is faster."""
ROWS = 4_096
"""Maximum number of rows for Python; with more, polars is faster."""
LONGEST = 200
"""Maximum length of a plain name in characters: Python's time may grow with the square of the length."""


def matches(names: pl.Expr, pattern: str) -> pl.Expr:
    """Return whether each of the text ``names`` contains ``pattern``; null for a null name."""
    return names.map_batches(lambda column: matching(column, pattern), pl.Boolean, is_elementwise=True)


def replaced(names: pl.Expr, pattern: str, text: str) -> pl.Expr:
    """Replace the first match of ``pattern`` in ``names`` by ``text``; its groups are ``${1}`` to ``${9}``."""
    return names.map_batches(lambda column: _replaced(column, pattern, text), pl.String, is_elementwise=True)


def extracted(names: pl.Expr, pattern: str, group: int) -> pl.Expr:
    """Return the match of a ``group`` of ``pattern`` in each of ``names``, or null."""
    return names.map_batches(lambda column: _extracted(column, pattern, group), pl.String, is_elementwise=True)


def matching(names: pl.Series, pattern: str) -> pl.Series:
    """Apply :func:`matches` to a column."""
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
    """Names of a short column, row by row, and the distinct names without null."""

    rows: list[str | None]
    distinct: set[str]


def _few(names: pl.Series) -> _Few | None:
    """Return the ``names`` if they are few and plain, else ``None``."""
    if len(names) > ROWS:
        return None
    rows: list[str | None] = names.to_list()
    distinct = {name for name in set(rows) if name is not None}
    return _Few(rows, distinct) if len(distinct) <= FEW and _are_plain(distinct) else None


def _are_plain(names: set[str]) -> bool:
    """Return whether all names are short, printable ASCII: engines differ on line ends and other letters."""
    text = "".join(names)
    return text.isascii() and text.isprintable() and (len(text) <= LONGEST or max(map(len, names)) <= LONGEST)


def _column(
    names: pl.Series, few: _Few, answers: Mapping[str, bool | str | None], kind: type[pl.DataType]
) -> pl.Series:
    """Return the answer for each row; null for a null name."""
    return pl.Series(names.name, [None if name is None else answers[name] for name in few.rows], dtype=kind)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of traceviz. The cache holds all of these, and their number is limited."""
    return re.compile(pattern)
