"""The leading cause within the steps, from the first sentence of a report."""

import re

_BEFORE = re.compile(
    r"^(Steps are [\d.]+ % of this run; .*?\. (?=[A-Z])|CPU only: no device work was captured\. "
    r"|[\d.]+ % of this run is .*?, which recurs in steps\. |No device work was captured: [^.]*\. )+"
)
_LEAD = re.compile(r"the program (?:computes|works)|\w[^:%]*?(?= in [\d.]+ %|:)", re.IGNORECASE)


def leading(sentence: str) -> str:
    """Return *the program computes*, *host blocked*, *locks*, *highly input-bound*, ..., without facts about the run.

    "The program computes" and "works" are the same: there is no other cause.
    """
    found = _LEAD.match(_BEFORE.sub("", sentence))
    assert found is not None, sentence
    return found.group().lower().replace("the program works", "the program computes")
