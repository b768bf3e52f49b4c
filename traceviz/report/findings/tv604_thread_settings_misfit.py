"""Finding TV604: thread settings misfit."""

from traceviz.report.findings.record import HOST, FindingRecord

OF_SPINNING = "KMP_BLOCKTIME=0 or 1: threads of OpenMP rest when they have done their work."
"""Advice if threads of OpenMP spin."""
OF_ONEDNN = "TF_ENABLE_ONEDNN_OPTS=1, or unset: oneDNN is what makes TensorFlow fast on processors."
"""Advice if oneDNN is off."""

RECORD = FindingRecord(
    code="TV604",
    slug="thread-settings-misfit",
    what=(
        "A setting of threads does not fit the machine: more threads than cores for the program, fewer than physical "
        "cores where the host limits the steps, OpenMP threads that spin while the input waits for a core, oneDNN "
        "turned off where the host computes the steps, or a CPU limit that holds threads back."
    ),
    why="Arithmetic is fastest with one thread on each physical core: more take turns, fewer leave cores idle.",
    advice=(
        OF_SPINNING,
        OF_ONEDNN,
        (
            "Throughput: a thread for each physical core that may be used (OMP_NUM_THREADS). PyTorch: "
            "torch.set_num_threads; TensorFlow: as many intra-op threads, and inter-op threads = sockets, or 2 "
            "(tf.config.threading)."
        ),
        "Real-time inference: few threads for each request, all of one socket.",
        "Several processes: divide the cores among them (torchrun sets OMP_NUM_THREADS=1 where nothing is set).",
    ),
    misleads="Settings can be overridden in the program; variables are those with which it was started.",
    references=("https://www.intel.com/content/www/us/en/developer/articles/guide/tensorflow-performance-tuning.html",),
    section="host",
    severity="hint",
    certainty="suspected",
    tables=HOST,
)
