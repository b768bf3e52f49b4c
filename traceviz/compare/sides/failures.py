"""Endings of runs that did not end by themselves, as text for tables: ``crashed: out of memory``."""

from __future__ import annotations

import re
from collections import Counter

from traceviz.compare.sides.sides import Side, fact
from traceviz.core.units import counted
from traceviz.parsers.run.manifest import STOPPED, Ending
from traceviz.report import MEASURES, Report

_ALONE = {"failed": "crashed", "timed-out": "timed out"}
"""Text for outcomes without a known reason."""
_SIGNAL = re.compile(r"signal \d+ \((\w+)\)$")


def failure(report: Report) -> str:
    """Return ``crashed: out of memory``, ``timed out after 60 s``, ``killed (SIGKILL)``; empty if it ended by
    itself.
    """
    outcome, reason = (str(fact(report, MEASURES, key) or "") for key in ("outcome", "reason"))
    if outcome not in STOPPED:
        return ""
    ending = Ending(outcome, _SIGNAL.sub(r"\1", reason))
    return ending.in_words if reason else _ALONE.get(outcome, outcome)


def failures(side: Side) -> Counter[str]:
    """Count the endings of a side's runs, without those that ended by themselves."""
    return Counter(filter(None, map(failure, side.reports)))


def cell(side: Side) -> str:
    """Return how the runs of a side without a figure ended; empty if one ended by itself."""
    found = failures(side)
    return "; ".join(text for text, _ in found.most_common()) if found.total() == len(side.reports) else ""


def sentence(side: Side) -> str:
    """Return ``vgg crashed: out of memory``; empty if a run of the side ended by itself."""
    words = cell(side)
    return f"{side.label} {'was ' * words.startswith(_PASSIVE)}{words}" if words else ""


def counts(side: Side) -> str:
    """Return ``1 of 3 runs crashed: out of memory``; empty if all runs of a side ended by themselves."""
    runs = counted(len(side.reports), "run")
    return ", ".join(
        f"{count:,} of {runs} {'was ' * way.startswith(_PASSIVE)}{way}" for way, count in failures(side).most_common()
    )


_PASSIVE = ("killed", "interrupted")
