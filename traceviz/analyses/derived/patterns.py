"""Pattern search in names. A small trace has few names.

Polars compiles a pattern in 0.1 to 2 ms and caches 32 of them, but the analyses of a trace use twice as many. Python
caches all of them, and searches a few names in that time. Python is used only for plain names, for which both engines
agree. User patterns always go to polars, since its time is linear for every pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial

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

    def apply(column: pl.Series) -> pl.Series:
        template = re.sub(r"\$\{(\d)\}", r"\\g<\1>", text)
        answer = partial(_compiled(pattern).sub, template, count=1)
        return _answers(column, pl.String, answer, lambda: column.str.replace(pattern, text))

    return names.map_batches(apply, pl.String, is_elementwise=True)


def extracted(names: pl.Expr, pattern: str, group: int) -> pl.Expr:
    """Return the match of a ``group`` of ``pattern`` in each of ``names``, or null."""

    def apply(column: pl.Series) -> pl.Series:
        def answer(name: str) -> str | None:
            found = _compiled(pattern).search(name)
            return None if found is None else found.group(group)

        return _answers(column, pl.String, answer, lambda: column.str.extract(pattern, group))

    return names.map_batches(apply, pl.String, is_elementwise=True)


def matching(names: pl.Series, pattern: str) -> pl.Series:
    """Apply :func:`matches` to a column."""
    return _answers(
        names,
        pl.Boolean,
        lambda name: _compiled(pattern).search(name) is not None,
        lambda: names.str.contains(pattern),
    )


def _answers(
    names: pl.Series,
    kind: type[pl.DataType],
    in_python: Callable[[str], bool | str | None],
    in_polars: Callable[[], pl.Series],
) -> pl.Series:
    """Return the answer of Python for each of ``names`` if they are few and plain, else that of polars."""
    if len(names) > ROWS:
        return in_polars()
    rows: list[str | None] = names.to_list()
    distinct = {name for name in rows if name is not None}
    text = "".join(distinct)
    # Engines differ on line ends and other letters
    is_plain = text.isascii() and text.isprintable() and max(map(len, distinct), default=0) <= LONGEST
    if len(distinct) > FEW or not is_plain:
        return in_polars()
    answers = {name: in_python(name) for name in distinct}
    return pl.Series(names.name, [None if name is None else answers[name] for name in rows], dtype=kind)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of traceviz. The cache holds all of these, and their number is limited."""
    return re.compile(pattern)
