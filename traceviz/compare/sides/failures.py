"""Runs that did not end by themselves, as a cell of a table says it: ``crashed: out of memory``."""

from __future__ import annotations

import re
from collections import Counter

from traceviz.compare.sides.sides import Side, fact
from traceviz.core.units import counted
from traceviz.parsers.run.manifest import STOPPED, Ending
from traceviz.report import MEASURES, Report

_ALONE = {"failed": "crashed", "timed-out": "timed out"}
"""Outcomes of which no more is known."""
_SIGNAL = re.compile(r"signal \d+ \((\w+)\)$")


def failure(report: Report) -> str:
    """``crashed: out of memory``, ``timed out after 60 s``, ``killed (SIGKILL)``; empty of what ended by itself."""
    outcome, reason = (str(fact(report, MEASURES, key) or "") for key in ("outcome", "reason"))
    if outcome not in STOPPED:
        return ""
    ending = Ending(outcome, _SIGNAL.sub(r"\1", reason))
    return ending.in_words if reason else _ALONE.get(outcome, outcome)


def failures(side: Side) -> Counter[str]:
    """How often the runs of a side ended in which way, without those that ended by themselves."""
    return Counter(filter(None, map(failure, side.reports)))


def cell(side: Side) -> str:
    """What stands in place of a figure that a side does not have: how its runs ended; empty where one ended well."""
    found = failures(side)
    return "; ".join(text for text, _ in found.most_common()) if found.total() == len(side.reports) else ""


def sentence(side: Side) -> str:
    """``vgg crashed: out of memory``; empty where a run of the side ended well."""
    words = cell(side)
    return f"{side.label} {'was ' * words.startswith(_PASSIVE)}{words}" if words else ""


def counts(side: Side) -> str:
    """``1 of 3 runs crashed: out of memory``; empty where all runs of a side ended by themselves."""
    runs = counted(len(side.reports), "run")
    return ", ".join(
        f"{count:,} of {runs} {'was ' * way.startswith(_PASSIVE)}{way}" for way, count in failures(side).most_common()
    )


_PASSIVE = ("killed", "interrupted")
