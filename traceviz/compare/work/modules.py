"""Modules of a PyTorch model, by class: 20 ``Conv2d`` and 1 ``Linear``. Frames of Python (``with_stack``) name them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from traceviz.compare.sides.sides import Side, fact, grid, rows
from traceviz.report import Report

OF_MODULES = "calls of nn.Module"
"""Source of the section on modules if it lists calls of modules instead of ranges."""
_INSTANCE = re.compile(r"^(?:\d+\()?(.*?)(?:_\d+|\))?$")
"""Matches the number that distinguishes modules of a class: ``Linear_3``, ``3(Linear)``."""
_COMPILED = re.compile(r"^(?:OptimizedModule|CompiledFxGraph|GraphModule)")
"""Modules whose parts Python no longer calls."""


def modules(side: Side) -> Counter[str]:
    """Count the innermost modules by class, from the first run that names any.

    It is empty if no run does, or the model is compiled.
    """
    return next((counted for report in side.reports if (counted := _modules(report))), Counter())


def _modules(report: Report) -> Counter[str]:
    if fact(report, "modules", "source") != OF_MODULES:
        return Counter()
    paths = {str(row["path"]) for row in rows(grid(report, "modules", "Exact"))}
    outer = {path.rpartition(" / ")[0] for path in paths}
    names = [_INSTANCE.sub(r"\1", path.rpartition(" / ")[2]) for path in paths - outer]
    compiled = any(_COMPILED.match(part) for path in paths for part in path.split(" / "))
    return Counter() if compiled else Counter(names)


def in_common(base: Counter[str], new: Counter[str]) -> float:
    """Return the share of the modules of both sides that both have."""
    return (base & new).total() / max((base | new).total(), 1)


def only_in(base: Counter[str], new: Counter[str]) -> Iterator[str]:
    """Return the modules that the first side has more of, the most first: ``20 Conv2d``."""
    return (f"{count} {name}" for name, count in sorted((base - new).items(), key=lambda item: (-item[1], item[0])))
