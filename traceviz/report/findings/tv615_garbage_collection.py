"""Finding TV615: garbage collection."""

from traceviz.report.findings.record import HOST, FindingRecord, TimelinePlace

WITHOUT_CALLS = "Do not call gc.collect() in steps."
"""Advice if the program itself collects."""

RECORD = FindingRecord(
    code="TV615",
    slug="garbage-collection",
    what="Python's garbage collector works in at least 5 % of the steps, as its own callbacks show.",
    why="A full collection looks at every object of the program, and no other thread runs Python during it.",
    advice=(
        WITHOUT_CALLS,
        "Freeze what was made before the loop, so that it is not looked at again: gc.collect(); gc.freeze().",
        "Collect at a time of your own: gc.disable() before the loop, gc.collect() every N steps or epochs.",
        "Keep fewer objects: arrays and tensors in place of lists of Python numbers and dictionaries.",
    ),
    misleads="Programs that make reference cycles need collections: without them memory grows.",
    references=("https://docs.python.org/3/library/gc.html#gc.freeze",),
    section="host_limits",
    explains=("host",),
    is_sampled=True,
    claim="Garbage collection: Python collects garbage",
    tables=HOST,
    place=TimelinePlace("phase", "the longest garbage collection", ("collection",)),
)
