"""Places of a cause: the function and the rank that take its time, and whether a report names them.

The records of a world with and without its cause show the places. A name that only the record with the cause holds is
one. The slow rank is the one that does most of the added work. A place counts only if the files of the capture hold it.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from pathlib import Path

from benchmarks.diagnosis.record import Kind, Record, Work
from benchmarks.diagnosis.scoring.findings import has_word
from benchmarks.diagnosis.writers.tensorflow_names import tensorflow_name
from traceviz.report import Report

MOST = 0.75
"""A rank is the place of a cause if it does this share of the added work."""
_GZIP = 16 + zlib.MAX_WBITS
FUNCTION, RANK = "function", "rank"
_BUILT_IN = re.compile(r"<built-in (?:function|method) (\w+)")
_PYTHON = re.compile(r"\(\d+\): (\w+)$")


def score_places(with_cause: Record, without: Record, report: Report, files: list[Path]) -> dict[str, bool]:
    """Return whether the first sentence or the first finding names the function and the rank.

    A kind of place is absent if the cause has none, or the capture does not hold it.
    """
    text = " ".join((report.verdict.sentence, *(finding.message for finding in report.findings[:1])))
    inside = [file for path in files for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    # A decompressor, as a file may be cut off.
    held = b"".join(
        zlib.decompressobj(wbits=_GZIP).decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        for file in inside
    )
    words = {word for word in place_words(with_cause, without) if word.encode() in held}
    named = {FUNCTION: any(has_word(word, text) for word in words)} if words else {}
    rank = find_slow_rank(with_cause, without)
    if rank is not None:
        named[RANK] = has_word(f"rank {rank}", text)
    return named


def new_names(with_cause: Record, without: Record) -> set[str]:
    """Return the names of spans and device work that only the first record holds."""
    first, second = (
        {span.name for span in record.spans} | {done.name for done in record.device} for record in (with_cause, without)
    )
    return first - second


def place_words(with_cause: Record, without: Record) -> set[str]:
    """Return the words of the new names, as PyTorch and as TensorFlow write them."""
    names = new_names(with_cause, without)
    spans = {(span.kind, span.name): span for span in with_cause.spans if span.name in names}
    renamed = {tensorflow_name(span) for span in spans.values() if span.kind in {Kind.RANGE, Kind.PYTHON}}
    return {word_of(name) for name in names | renamed} - {""}


def word_of(name: str) -> str:
    """Return the word of a name that a report would print: the function without file, type and arguments."""
    found = _BUILT_IN.search(name) or _PYTHON.search(name)
    if found:
        return found[1]
    words = re.findall(r"\w+", re.split(r"[<(]", name, maxsplit=1)[0])
    return words[-1] if words else ""


def find_slow_rank(with_cause: Record, without: Record) -> int | None:
    """Return the rank that does most of the work that the cause adds; ``None`` if no single one does."""
    if with_cause.ranks < 2:
        return None
    names = new_names(with_cause, without)
    work: Counter[int] = Counter()
    for record, sign in ((with_cause, 1), (without, -1)):
        for done in record.device:
            if done.work is not Work.COLLECTIVE:  # the other ranks wait in collectives
                work[done.rank] += sign * (done.end - done.start)
    for span in with_cause.spans:
        if span.name in names:
            work[span.rank] += span.end - span.start
    added = {rank: ns for rank, ns in work.items() if ns > 0}
    if not added:
        return None
    rank = max(added, key=lambda one: added[one])
    is_clear = added[rank] >= MOST * sum(added.values()) and added[rank] >= 0.02 * with_cause.end
    return rank if is_clear else None
