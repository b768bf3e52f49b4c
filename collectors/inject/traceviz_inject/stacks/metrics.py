"""Thinning of the program's figures: first all values are written, later only the notable ones of many in a row.

::

    values of one name   9 8 7 6 | 5 7 4 6 3 5 4 4 4 5 | ...
    written              all       least, greatest and last of ten, later of a hundred, then of a thousand
"""

from __future__ import annotations

from ..status import complain

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Optional

    Metric = tuple[str, Optional[float], Optional[int], Optional[int], int, str]

JOINED = ((2_000, 1), (20_000, 10), (200_000, 100), (float("inf"), 1_000))
"""Number of values of a name up to which groups have the given size; the notable values of a group are written."""
MOST_NAMES = 500
"""Limit of names that are written: a program that puts the step number into names has one per step."""
_VALUE = 1


class Metrics:
    """The figures of this process, by name and source."""

    __slots__ = ("_counts", "_held")

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], list[Metric]] = {}

    def take(self, metric: Metric) -> Sequence[Metric]:
        """Add a figure, and return those that are to be written now.

        Args:
            metric: Name, value (``None``: not finite), step, epoch, time of the monotonic clock in ns, source.
        """
        key = metric[0], metric[-1]
        count = self._counts.get(key, 0) + 1
        if count == 1 and len(self._counts) >= MOST_NAMES:
            complain(f"more than {MOST_NAMES} names of metrics: those of further names are not recorded")
            return ()
        self._counts[key] = count
        held = self._held.setdefault(key, [])
        held.append(metric)
        if len(held) < next(joined for most, joined in JOINED if count <= most):
            return ()
        self._held[key] = []
        return telling(held)

    def rest(self) -> Sequence[Metric]:
        """Return the figures that are still held back, at the end of the process, and forget them."""
        groups, self._held = self._held, {}
        return [metric for held in groups.values() for metric in telling(held)]


def telling(metrics: Sequence[Metric]) -> Sequence[Metric]:
    """Return the least, the greatest and the last of ``metrics``, and the first that is not finite, in their order."""
    if len(metrics) <= 3:
        return metrics
    values = [(metric[_VALUE], place) for place, metric in enumerate(metrics)]
    finite = [value for value in values if value[0] is not None]
    odd = [place for value, place in values if value is None][:1]
    kept = {len(metrics) - 1, *odd, *((min(finite)[1], max(finite)[1]) if finite else ())}
    return [metrics[place] for place in sorted(kept)]
