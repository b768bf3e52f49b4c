"""Finding TV702: slow validation."""

from traceviz.report.findings.record import RUN, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV702",
    slug="slow-validation",
    what="The program evaluates its model in at least 5 % of the run.",
    why="No step runs during that time.",
    advice=(
        "Evaluate less often, or on a part of the data, and on all of it at the end.",
        (
            "Evaluate as fast as you train: a larger batch, no gradients (torch.no_grad(), model.eval()), a loader "
            "with workers, a compiled step."
        ),
        "Keep results on the device and read them once, after the last batch.",
    ),
    misleads="A program whose purpose it is to evaluate. Below 20 % it is for information.",
    section="whole_run",
    hint_if="Validation takes less than 20 % of the run.",
    is_of_run=True,
    tables=RUN,
    place=TimelinePlace("run_part", "the longest validation", ("validation",)),
)
