"""Finding TV406: launches beside input threads."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV406",
    slug="launches-beside-input-threads",
    what=(
        "In at least 3 % of steady step time kernels are being launched, no device works, and threads of the input "
        "pipeline run at the same time; launches have no threads of their own."
    ),
    why="TensorFlow launches kernels from the threads that also run tf.data: when those are busy, launches wait.",
    advice=(
        "Give launching threads of its own: TF_GPU_THREAD_MODE=gpu_private (and TF_GPU_THREAD_COUNT=1 or 2).",
        "Leave cores free: options.threading.private_threadpool_size in tf.data below the number of cores.",
    ),
    misleads="Launching is slow for another reason (many small kernels) and the input only runs at the same time.",
    references=("https://www.tensorflow.org/guide/gpu_performance_analysis",),
    section="launch_contention",
    compares_clocks=True,
    explains=("kernel_launch", "launch_queue"),
    claim="Launches: input threads delay them",
    tables=("launch_contention", "launch", "operators"),
    place=TimelinePlace("idle_class", "the longest kernel launch without device work", ("kernel_launch",)),
)
