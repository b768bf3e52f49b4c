"""Finding TV102: possibly input bound."""

from traceviz.report.findings.record import INPUT, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV102",
    slug="possibly-input-bound",
    what=(
        "No data-loading range was recorded, and in at least 20 % of steady step time no device works, nothing is "
        "launched or waited for, and the training thread waits in an operating-system call or computes on the host."
    ),
    why="A loader that is too slow looks like this, but so does any other work on the host.",
    advice=(
        "Record data loading as a range or annotation named 'data loading', or name your own with --input-range.",
        (
            "Wrap what takes the next batch. TensorFlow: in tf.profiler.experimental.Trace('data loading'); "
            "PyTorch: in torch.profiler.record_function('data loading'), for Nsight Systems in "
            "torch.cuda.nvtx.range('data loading'); JAX: in jax.profiler.TraceAnnotation('data loading')."
        ),
        "Nsight Systems: record operating-system calls too, if the capture has none (--trace=cuda,nvtx,osrt).",
        "Compare with a run on synthetic data kept on the device: if it is faster, the input is the limit.",
    ),
    misleads="Checkpointing, logging, evaluation or Python overhead between steps look the same without ranges.",
    references=("https://docs.nvidia.com/nsight-systems/UserGuide/",),
    section="input_pipeline",
    compares_clocks=True,
    explains=("os_call", "host", "unexplained"),
    certainty="suspected",
    is_candidate=False,
    is_of_input=True,
    tables=INPUT,
    place=TimelinePlace("idle_class", "the longest idle time that may be input", ("host_blocked", "host_compute")),
    supposes="TV101",
)
