"""What leads within the steps, by the first sentence of a report."""

import re

_BEFORE = re.compile(
    r"^(Steps are [\d.]+ % of this run; .*?\. (?=[A-Z])|In steps, [^:]*: |CPU only: no device work was captured\. "
    r"|No device work was captured: [^.]*\. )+"
)
_LEAD = re.compile(r"the program (?:computes|works)|\w[^:%]*?(?= in [\d.]+ %|:)", re.IGNORECASE)


def leading(sentence: str) -> str:
    """*the program computes*, *host blocked*, *locks*, *highly input-bound*, ..., without what is said of the run.

    What the program computes and works is the same: there is no other cause.
    """
    found = _LEAD.match(_BEFORE.sub("", sentence))
    assert found is not None, sentence
    return found.group().lower().replace("the program works", "the program computes")
