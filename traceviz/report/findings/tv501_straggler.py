"""Finding TV501: straggler."""

from traceviz.report.findings.record import RANKS, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV501",
    slug="straggler",
    what=(
        "Of three or more ranks, one needs much longer than the others for its own work (step time without waiting in "
        "collectives): its modified z-score is above 3.5, it is the slowest in most steps, and at least 2 % of the "
        "judged time could be saved."
    ),
    why="Ranks that train together wait for the slowest in every step: all of them lose what one of them is slower.",
    advice=(
        "Look at that rank alone (--rank N), and at the class of its steps that is larger than elsewhere.",
        "More compute: uneven shards or sequence lengths, a busy or throttled GPU (clocks, temperature, power).",
        "More host time or input wait: a slow node, fewer cores, another file system, logging on rank 0 only.",
        "Where the node is at fault, exchange it; where the data is, balance it (bucket by length).",
    ),
    misleads=(
        "A rank that has more work by design (the first or last stage of a pipeline, evaluation on rank 0). Only the "
        "ranks captured are compared."
    ),
    references=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",),
    section="ranks",
    explains=("communication", "host_collective"),
    disjoint_from=("TV506",),
    is_per_rank=True,
    is_of_ranks=True,
    claim="Straggler: waiting for rank {rank} takes",
    claims_of=(("", "Straggler: ranks wait for one rank"),),
    tables=RANKS,
    place=TimelinePlace("straggler", "the slowest step of rank {rank}"),
)
