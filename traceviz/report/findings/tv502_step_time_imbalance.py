"""Finding TV502: step time imbalance."""

from traceviz.report.findings.record import RANKS, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV502",
    slug="step-time-imbalance",
    what=(
        "The slowest rank needs at least 5 % more time per step for its own work (without waiting in collectives) than "
        "the median rank; medians over its steps. Without steps that all ranks have, their judged times are compared."
    ),
    why=(
        "Ranks that do not wait for one another in every step finish at different times; where they meet at last, all "
        "wait for the slowest."
    ),
    advice=(
        "Balance the work: shards of equal size, batches of equal length, experts or stages of equal cost.",
        "Compare the step breakdown of the slowest rank (--rank N) with that of another.",
    ),
    misleads=(
        "Pipeline stages and experts are unequal by design. Captures that do not cover the same steps, or start with "
        "compilation, differ without any fault."
    ),
    references=("https://pytorch.org/docs/stable/distributed.html",),
    section="ranks",
    part_of=("TV501", "TV503"),
    explains=("communication", "host_collective"),
    disjoint_from=("TV506",),
    is_per_rank=True,
    is_of_ranks=True,
    claim="Uneven ranks: waiting for rank {rank} takes",
    claims_of=(("", "Uneven ranks: they wait for the slowest"),),
    tables=RANKS,
    place=TimelinePlace("uneven_step", "the step in which ranks differ most"),
)
