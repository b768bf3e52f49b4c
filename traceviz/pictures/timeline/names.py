"""Names of spans, each with a number and a family, collected while a timeline is filled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import codes
from traceviz.analyses.derived.grouped import first_of_each
from traceviz.core.arrays.nested import Codes, alike
from traceviz.core.sanitize import bounded, visible
from traceviz.report.pictures.values import Array, Family

UNKNOWN = "?"
"""Name of an event without one."""
MOST_LOOKED_UP = 1 << 23
"""Codes below this number are looked up in a table."""

Families = Callable[[Sequence[str]], Sequence[Family]]
"""Function that returns the families of distinct names."""


def always(family: Family) -> Families:
    """Return the same family for all names."""
    return lambda texts: [family] * len(texts)


class Names:
    """The names of a timeline; equal texts of one family are one name."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.families: list[Family] = []
        self.family_of: list[int] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._family_numbers: dict[str, int] = {}

    def number(self, text: str, family: Family) -> int:
        """Return the number of a name; texts are cut to the length that a page shows."""
        shown = bounded(visible(bounded(text))) or UNKNOWN
        key = (shown, family.key)
        if key not in self._numbers:
            self._numbers[key] = len(self.texts)
            self.texts.append(shown)
            self.family_of.append(self._family(family))
        return self._numbers[key]

    def _family(self, family: Family) -> int:
        if family.key not in self._family_numbers:
            self._family_numbers[family.key] = len(self.families)
            self.families.append(family)
        return self._family_numbers[family.key]

    def of_texts(self, texts: Iterable[str | None], families: Families) -> Codes:
        """Return the numbers of these names, in their order."""
        known = [UNKNOWN if text is None else text for text in texts]
        numbers = [self.number(text, family) for text, family in zip(known, families(known), strict=True)]
        return np.array(numbers, np.int32)

    def of_column(self, column: pl.Series, families: Families, shown: Callable[[str], str] = str) -> Codes:
        """Return the numbers of the names in a large column with few distinct values, as converted by ``shown``."""
        coded = codes(column)
        firsts = first_of_each(coded)
        distinct = [None if text is None else shown(text) for text in column.gather(firsts).cast(pl.String)]
        return _looked_up(coded, coded[firsts], self.of_texts(distinct, families))

    def of_groups(
        self, columns: Sequence[pl.Series], texts: Callable[[pl.DataFrame], list[tuple[str, Family]]]
    ) -> Codes:
        """Return the numbers of names made of several columns; ``texts`` receives their distinct rows."""
        group, firsts = alike(*(codes(column) for column in columns))
        made = texts(pl.DataFrame([column.gather(firsts).cast(pl.String) for column in columns]))
        return np.array([self.number(*one) for one in made], np.int32)[group]


def _looked_up(coded: Codes, distinct: Codes, numbers: Codes) -> Codes:
    """Return the number of each code; ``numbers`` are those of the ``distinct`` codes."""
    if not coded.size:
        return np.empty(0, np.int32)
    if int(distinct.max()) >= MOST_LOOKED_UP:
        order = np.argsort(distinct)
        return numbers[order][np.searchsorted(distinct[order], coded)]
    table = np.zeros(int(distinct.max()) + 2, np.int32)
    table[distinct + 1] = numbers
    return table[coded + 1]


MOST_TEXT = 1_500_000
"""Limit of the characters of all names of a page."""


def fewer(names: Names, weights: npt.NDArray[np.float64]) -> tuple[tuple[str, ...], Array, Array]:
    """Select the names that a page holds: used names, and of very many those with the most time.

    Args:
        names: All names.
        weights: The weight of each; 0 for names without spans.

    Returns:
        The texts, the family number of each, and the new place of each old number. Names that were left out share one
        place per family. The text of that place reports how many names it represents.
    """
    lengths = np.array([len(text) for text in names.texts], np.int64)
    families = np.array(names.family_of, np.int64)
    order = np.argsort(-weights, kind="stable")
    used = weights[order] > 0
    is_kept = np.zeros(weights.size, bool)
    is_kept[order] = used & (np.cumsum((lengths[order] + _OF_EACH) * used) <= MOST_TEXT)
    kept, left = np.flatnonzero(is_kept), np.flatnonzero(~is_kept & (weights > 0))
    place = np.zeros(weights.size, np.int64)
    place[kept] = np.arange(kept.size)
    others, inverse, counts = np.unique(families[left], return_inverse=True, return_counts=True)
    place[left] = kept.size + inverse
    texts = [names.texts[number] for number in kept]
    texts += [f"one of {count:,} further names" for count in counts]
    return tuple(texts), np.concatenate([families[kept], others]), place


_OF_EACH = 8
"""Characters that each name takes in addition to its text: quotes, comma, number of its family."""
