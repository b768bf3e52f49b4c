"""Labels of the sides of a comparison: the shortest names that are distinct."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath

_SUFFIXES = re.compile(
    r"(\.pt)?(\.trace)?\.json(\.gz)?$|\.xplane\.pb(\.gz)?$|\.(nsys-rep|qdrep|qdstrm|sqlite|nvvp|nvprof|sql|csv)$"
)
"""Ends of file names that say the format."""


def labels(
    paths: Sequence[str], names: Sequence[str | None] = (), tags: Sequence[Mapping[str, str]] = ()
) -> tuple[str, ...]:
    """A name for each side.

    Args:
        paths: What the user named.
        names: Names of the runs, where they are runs; the first choice, as somebody gave them.
        tags: Tags of the runs; those in which they differ are the second choice.

    Returns:
        Distinct names, in the order of ``paths``: a path that is named twice gets a number.
    """
    given = [name for name in names if name]
    if len(given) == len(paths) == len(set(given)):
        return tuple(given)
    keys = dict.fromkeys(key for of_side in tags for key in of_side)
    differing = [key for key in keys if len({of_side.get(key) for of_side in tags}) > 1]
    tagged = [" ".join(f"{key}={of_side[key]}" for key in differing if key in of_side) for of_side in tags]
    if len(tagged) == len(paths) == len(set(tagged)) and all(tagged):
        return tuple(tagged)
    return numbered(_shortest(paths))


def _shortest(paths: Sequence[str]) -> list[str]:
    """Names of the files without their format where they are distinct; else what differs in the paths."""
    names = [PurePath(path).name or path for path in paths]
    for candidate in ([_SUFFIXES.sub("", name) or name for name in names], names):
        if _tell_apart(candidate, paths):
            return candidate
    parts = [PurePath(path).parts for path in paths]
    least = min(map(len, parts))
    same = next((index for index in range(least) if len({path[-1 - index] for path in parts}) > 1), 0)
    different = [path[: len(path) - same] for path in parts]
    tails = (["/".join(path[-count:]) for path in different] for count in range(1, max(map(len, different)) + 1))
    return next((tail for tail in tails if _tell_apart(tail, paths)), list(paths))


def _tell_apart(names: Sequence[str], paths: Sequence[str]) -> bool:
    """Whether different paths have different names."""
    return len(set(names)) == len(set(paths))


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Names with a number from the second of several equal ones on: ``run``, ``run (2)``."""
    seen: Counter[str] = Counter()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(distinct)
