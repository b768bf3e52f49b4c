"""Finding TV621: stalled thread pool."""

from traceviz.report.findings.record import COMPUTING, FindingRecord

RECORD = FindingRecord(
    code="TV621",
    slug="stalled-thread-pool",
    what=(
        "No device was captured, PyTorch divides an operator among more threads than cores are free, and in at least "
        "20 % of the steps (50 % if only other programs take the cores) operators stall: their mean is far above what "
        "a tenth of their calls take, five times as far as that of most calls of the program."
    ),
    why=(
        "A parallel operator ends with the last of its threads. While one of them waits for a core, the others wait "
        "for it, often a thousand times as long as the operator takes."
    ),
    advice=(
        (
            "Use as many threads as cores are free: OMP_NUM_THREADS=1 (or 2) before the command, or "
            "torch.set_num_threads(1) in the program; then compare both runs with traceviz compare."
        ),
        "Run the program when other programs leave the machine alone, or bind it to cores of its own (taskset).",
    ),
    misleads=(
        "Operators that wait for memory or for a file of their own. On a machine without other programs, and with no "
        "more threads than cores, nothing is reported."
    ),
    references=("https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cpu-oversubscription",),
    section="host_limits",
    explains=("host",),
    hint_if="Only other programs take the cores, and a function of the program takes 20 % of the steps.",
    claim="Stalled threads: operators wait for cores",
    tables=COMPUTING,
)
