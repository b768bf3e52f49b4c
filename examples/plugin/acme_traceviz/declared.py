"""Declarations of the plugin's section and finding, which traceviz reads before it runs the analysis."""

from __future__ import annotations

from traceviz.plugins import AnalysisEntry, FindingRecord

SHORT_KERNELS = AnalysisEntry(
    "acme_short_kernels",
    "acme_traceviz.analysis:ShortKernelsAnalysis",
    needs=("kernels",),
    formats=frozenset({"acme"}),
)

ACME101 = FindingRecord(
    code="ACME101",
    slug="acme-short-kernels",
    what="At least 20 % of the kernel time of an ACME trace is in kernels shorter than 10 µs.",
    why="The scheduler of ACME devices needs 8 µs between two kernels.",
    advice=("Fuse small operations: compile the model with acme.compile().",),
    section="acme_short_kernels",
    explains=(),
    certainty="suspected",
    tables=("acme_short_kernels",),
    place=None,
    misleads="Kernels of a warm-up are short as well: record steady steps.",
)
