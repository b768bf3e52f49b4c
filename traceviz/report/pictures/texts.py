"""Names in the data of a page, which no reader needs whole where they are many and long."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from traceviz.core.sanitize import bounded, visible

_LENGTHS = 2_000, 1_000, 500, 250, 120
"""How long a name may be, if all are to fit."""


def plain(text: str) -> str:
    """A text as people see it, of 2,000 characters at most."""
    return bounded(visible(bounded(text)))


def fitting(texts: Iterable[str], most_characters: int) -> list[str]:
    """The texts as people see them; the longest lose their middle until all have ``most_characters`` together.

    They keep 120 characters each, however many they are: names of kernels differ at both ends.
    """
    shown = [plain(text) for text in texts]
    lengths = np.array([len(text) for text in shown], np.int64)
    most = next((length for length in _LENGTHS if np.minimum(lengths, length).sum() <= most_characters), _LENGTHS[-1])
    tail = most // 3
    return [text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}" for text in shown]
