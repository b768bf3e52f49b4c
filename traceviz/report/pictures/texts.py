"""Names in the data of a page, shortened if they are many and long."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from traceviz.core.sanitize import bounded, visible

_LENGTHS = 2_000, 1_000, 500, 250, 120
"""Limits of the length of a name, tried in order until all names fit."""


def plain(text: str) -> str:
    """Return a sanitized text of up to 2,000 characters."""
    return bounded(visible(bounded(text)))


def fitting(texts: Iterable[str], most_characters: int) -> list[str]:
    """Sanitize texts, and cut the middle of the longest until all have at most ``most_characters`` together.

    Each text keeps at least 120 characters: names of kernels differ at both ends.
    """
    shown = [plain(text) for text in texts]
    lengths = np.array([len(text) for text in shown], np.int64)
    most = next((length for length in _LENGTHS if np.minimum(lengths, length).sum() <= most_characters), _LENGTHS[-1])
    tail = most // 3
    return [text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}" for text in shown]
