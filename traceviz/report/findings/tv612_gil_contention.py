"""Finding TV612: gil contention."""

from traceviz.report.findings.record import THREADS, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV612",
    slug="gil-contention",
    what=(
        "On average at least 1.5 threads of the process want to run Python at once, and the main thread waits for the "
        "interpreter, or for threads that take turns with it, in at least 5 % of the steps, by samples of all stacks."
    ),
    why=(
        "The interpreter runs one thread at a time (its global lock, the GIL), each for five milliseconds while others "
        "want it: the main thread launches its next operator that much later."
    ),
    advice=(
        "Put Python's own work into processes: multiprocessing, concurrent.futures.ProcessPoolExecutor.",
        "PyTorch: workers of the DataLoader (num_workers) in place of threads.",
        "Use libraries that release the lock while they work: NumPy on whole arrays, Pillow-SIMD, orjson, polars.",
        "Let background threads rest: longer pauses, fewer of them, larger pieces of work.",
    ),
    misleads="What a thread waits for a core that other programs use is left out by a bound, not measured.",
    references=("https://docs.python.org/3/glossary.html#term-global-interpreter-lock",),
    section="host_limits",
    half_of=("TV615",),
    explains=("waiting", "lock", "gil"),
    is_sampled=True,
    claim="GIL: steps wait for the interpreter lock",
    tables=THREADS,
    place=TimelinePlace("sampled", "the longest wait for the interpreter", ("gil",)),
)
