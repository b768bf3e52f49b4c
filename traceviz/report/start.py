"""The place in the evidence of a finding at which to start: a line, a function, a rank, a call.

Advice and the headline state it first: *start at decode (train.py:41)*.
"""

from __future__ import annotations

import re

from traceviz.report.document import Fact, Finding

_KEYS = (
    *("line", "location", "place", "parameter_place", "where", "cause", "worst"),
    *("operator", "largest", "stage", "last_stage", "lane", "streams"),
)
"""Keys of facts that name a place, the most precise first: a line of the program, else a call, else an operator."""
_OF_A_RANK = frozenset({"TV501", "TV502", "TV503"})
"""Codes of findings whose place is a rank, with what takes its time."""
_NO_PLACES = frozenset({"migrations of managed memory"})
"""Causes that name no place."""
_LINE = re.compile(r"(?s)^(?P<call>.* in )?(?:\S*/)?(?P<file>[^/]+?):(?P<line>\d+) (?P<function>.+)$")


def find_start(finding: Finding) -> str:
    """Return the place at which to start on a finding, for use within a sentence; empty if the evidence names none.

    >>> find_start(finding)
    'decode (train.py:41)'
    """
    facts = {fact.key: fact for fact in finding.evidence if fact.value is not None}
    texts = (facts[key].value for key in _KEYS if key in facts)
    named = next((text for text in texts if isinstance(text, str) and text not in _NO_PLACES), "")
    if finding.code in _OF_A_RANK:
        return ": ".join(filter(None, (_name_rank(facts), place_within_sentence(named))))
    return place_within_sentence(named)


def _name_rank(facts: dict[str, Fact]) -> str:
    return f"rank {facts['rank'].value}" if "rank" in facts else ""


def place_within_sentence(place: str) -> str:
    """Return a place of the evidence for use within a sentence.

    ``src/train.py:41 Images.decode`` becomes ``decode (train.py:41)``, also after a call (*time.sleep in ...*), and the
    share of a line is left out.
    """
    match = _LINE.match(place)
    if match is None:
        start, in_line, line = place.partition(" % of it in line ")
        file, comma, _ = start.rpartition(", ")
        return f"{file}:{line}" if in_line and comma else place
    where, function = f"{match['file']}:{match['line']}", match["function"].rpartition(".")[2]
    named = where if function.startswith("<") else f"{function} ({where})"
    return f"{match['call'] or ''}{named}"
