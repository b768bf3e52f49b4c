"""Matching of kernels of two sides that a library, a compiler or a profiler names differently.

Rules, from the most to the least certain; each applies to the kernels that the previous rules left:

1. the same name;
2. the same spelling (:func:`spelling`): profilers print one C++ name differently;
3. the same base name, if a side has only that: ``ns::kernel`` and ``ns::kernel<float, 4>``;
4. the same base name and family, called as often per step: other template arguments, such as another precision;
5. the same family, called as often per step: another library does the work.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import lru_cache

SAYS_NOTHING = frozenset({"unknown", "fusion", "elementwise", "reduction", "copy", "indexing"})
"""Families whose kernels may do anything: two kernels of one such family need not do the same work."""

ALIKE = Fraction(1, 20)
"""Largest difference of calls per step, as share of the larger, at which two kernels count as called equally often."""


@dataclass(frozen=True, slots=True)
class PerStep:
    """Exact calls and time per step of events of one name."""

    calls: Fraction
    ns: Fraction
    group: str = ""


Events = Mapping[str, PerStep]
"""Events of one side by name."""


class How(IntEnum):
    """Rule by which two kernels are the same; a higher value is less certain."""

    NAME = 1
    SPELLING = 2
    BARE = 3
    BASE_NAME = 4
    FAMILY = 5
    NOT = 6


@dataclass(frozen=True, slots=True)
class Match:
    """Names of the base and of the new side that are the same kernel. One of them is empty if there is no match."""

    base: tuple[str, ...]
    new: tuple[str, ...]
    how: How


def matches(base: Events, new: Events) -> tuple[Match, ...]:
    """Match all kernels of both sides; each is in one match."""
    left = _Left(dict(base), dict(new))
    left.take(Match((name,), (name,), How.NAME) for name in sorted(base.keys() & new.keys()))
    left.take(_match_groups(left, spelling, How.SPELLING))
    # Base names that one side has without template arguments, and the other only with some.
    left.take(
        [
            match
            for match in _match_groups(left, base_name, How.BARE)
            if any(all("<" not in spelling(name) for name in names) for names in (match.base, match.new))
        ]
    )
    left.take(_pair_equally_called(left, lambda name, event: (base_name(name), event.group), How.BASE_NAME))
    left.take(_pair_equally_called(left, _family, How.FAMILY))
    left.take([Match((name,), (), How.NOT) for name in left.base])
    left.take([Match((), (name,), How.NOT) for name in left.new])
    return tuple(left.matches)


@dataclass(slots=True)
class _Left:
    """Kernels without a match yet, and the matches so far."""

    base: dict[str, PerStep]
    new: dict[str, PerStep]
    matches: list[Match] = field(default_factory=list)

    def take(self, new_matches: Iterable[Match]) -> None:
        """Keep matches and remove their kernels from the search."""
        for match in list(new_matches):
            self.matches.append(match)
            for name in match.base:
                del self.base[name]
            for name in match.new:
                del self.new[name]


def _match_groups(left: _Left, key: Callable[[str], str], how: How) -> list[Match]:
    """Match kernels with the same key on both sides, all of one key together."""
    base, new = _names_by_key(left.base, key), _names_by_key(left.new, key)
    return [Match(names, new[shared], how) for shared, names in base.items() if shared in new]


def _pair_equally_called(left: _Left, key: Callable[[str, PerStep], Hashable], how: How) -> list[Match]:
    """Pair kernels with the same key that are called equally often per step, largest time first."""
    candidates: dict[Hashable, dict[Fraction, deque[str]]] = {}
    for name in _largest_first(left.new):
        by_calls = candidates.setdefault(key(name, left.new[name]), {})
        by_calls.setdefault(left.new[name].calls, deque()).append(name)
    rates = {group: sorted(by_calls) for group, by_calls in candidates.items()}
    pairs = []
    for name in _largest_first(left.base):
        event = left.base[name]
        group = key(name, event)
        if group is None or group not in candidates:
            continue
        by_calls = candidates[group]
        lowest, highest = event.calls * (1 - ALIKE), event.calls / (1 - ALIKE)
        about = rates[group][bisect_left(rates[group], lowest) : bisect_right(rates[group], highest)]
        queues = [by_calls[calls] for calls in about if by_calls[calls]]
        if queues:
            queue = min(queues, key=lambda queue: (-left.new[queue[0]].ns, queue[0]))
            pairs.append(Match((name,), (queue.popleft(),), how))
    return pairs


def _family(_: str, event: PerStep) -> str | None:
    return None if not event.group or event.group in SAYS_NOTHING else event.group


def _largest_first(events: Events) -> list[str]:
    return sorted(events, key=lambda name: (-events[name].ns, name))


def _names_by_key(events: Events, key: Callable[[str], str]) -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {}
    for name in _largest_first(events):
        names.setdefault(key(name), []).append(name)
    return {shared: tuple(group) for shared, group in names.items()}


_LONGEST = 4_000
"""Characters of a name that are compared; this bounds the time."""
_UNNAMED = re.compile(r"(\(anonymous namespace\)|<unnamed>|\(anonymous\)|\{anonymous\})(::)?")
_INSTANCE = re.compile(r"\(instance (\d+)\)")
_INNERMOST = re.compile(r"\([^()]*\)")
_NUMBER = re.compile(r"\b(\d+)(?:ull|ul|ll|u|l)\b", re.IGNORECASE)
_LAMBDA = re.compile(r"[\[{](lambda)([^\[\]{}]*)[\]}]")
_TYPE_BEFORE = re.compile(r"\b(void|const) ")


@lru_cache(maxsize=1 << 16)
def spelling(name: str) -> str:
    """Normalise a C++ name: remove the parts that demanglers print differently.

    Nsight Systems writes ``void k<(int)4, (bool)1, f(T1 &)::[lambda(int) (instance 2)]>(int, T2)`` where CUPTI and
    PyTorch write ``void k<4, true, f(float&)::{lambda(int)#2}>(int, float)``; both become ``k<4,1,f::{lambda#2}>``.
    Everything in round brackets is removed: template arguments determine parameters, and casts follow from their
    operand.
    """
    text = _INSTANCE.sub(r"#\1", _UNNAMED.sub("", name[:_LONGEST]))
    before = ""
    while before != text:
        before, text = text, _INNERMOST.sub("", text)
    text = _TYPE_BEFORE.sub("", _LAMBDA.sub(r"{\1\2}", text))
    text = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", text))
    return re.sub(r"\s+", "", _NUMBER.sub(r"\1", text)) or name


def base_name(name: str) -> str:
    """Return the spelling without template arguments: ``at::native::reduce_kernel``."""
    return spelling(name).partition("<")[0]
