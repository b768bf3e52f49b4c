"""Finding TV503: late collectives."""

from traceviz.report.findings.record import RANKS, FindingRecord, TimelinePlace

OF_SLOW_RANK = "Look at the rank that needs most time for its own work: what it does before, the others do not."
"""Advice if one rank needs more time than the others."""
OF_TURNS = "Where every rank is late in turn, chance is the cause: fewer synchronisations even it out."
"""Advice if none does."""

RECORD = FindingRecord(
    code="TV503",
    slug="late-collectives",
    what=(
        "In at least 5 % of the judged time ranks wait in collectives for ranks that arrive later, and compute nothing "
        "during that time. In communication that cannot be compared call by call, ranks wait for the one with the most "
        "work of its own in a step: by the time for which they communicate longer."
    ),
    why="A collective transfers nothing before the last rank has come; the time before that is not the network's.",
    advice=(
        OF_SLOW_RANK,
        "Balance the work between collectives: lengths of sequences, sizes of shards, work on one rank only.",
        "Input wait on one rank delays all: give each as many loader workers and cores, and data as near.",
        OF_TURNS,
    ),
    misleads=(
        "Ranks of a pipeline wait by design. Kernels of collectives that end at different times on different ranks "
        "(broadcast, reduce) seem to wait; only ranks that were captured are compared."
    ),
    references=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/collectives.html",),
    section="ranks",
    half_of=("TV501",),
    explains=("communication", "host_collective"),
    disjoint_from=("TV506",),
    is_per_rank=True,
    is_of_ranks=True,
    claim="Late collectives: waiting for rank {rank} takes",
    claims_of=(("", "Late collectives: ranks wait for one another"),),
    tables=RANKS,
    place=TimelinePlace("late_collective", "the longest wait for a late rank"),
)
