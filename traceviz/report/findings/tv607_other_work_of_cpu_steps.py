"""Finding TV607: other work of cpu steps."""

from traceviz.report.findings.record import HOST, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV607",
    slug="other-work-of-cpu-steps",
    what=(
        "No device work was captured, and at least 20 % of the judged time is spent outside of operators: in Python, "
        "in "
        "ranges with nothing more precise in them, in the runtime of the framework, or in calls of the operating "
        "system."
    ),
    why="It is time in which no operator computes.",
    advice=(
        "Look at the function or range that is named: what it does in each step, and whether it has to.",
        ("Python: operations on whole arrays in place of loops; what is the same in each step, once before the loop."),
        (
            "Record more of it. PyTorch: torch.profiler.profile(with_stack=True); JAX: python_tracer_level=1; "
            "Nsight Systems: NVTX ranges around its parts."
        ),
    ),
    misleads=(
        "It is a hint: programs that are written in Python, or that record nothing but their ranges, spend their time "
        "there by design."
    ),
    references=("https://pytorch.org/docs/stable/profiler.html",),
    section="cpu_steps",
    severity="hint",
    part_of=("TV608",),
    half_of=("TV610", "TV611", "TV612", "TV613", "TV614", "TV615", "TV616", "TV622"),
    tables=("cpu_steps", *HOST),
    place=TimelinePlace("largest_operation", "the longest call of what takes most time"),
)
