"""Finding TV619: several memory nodes."""

from traceviz.report.findings.record import HOST, FindingRecord

RECORD = FindingRecord(
    code="TV619",
    slug="several-memory-nodes",
    what=(
        "The host computes the steps on cores of several memory nodes (NUMA; mostly one of each socket), each with at "
        "least a quarter of the busy cores, while all would fit into one node, and other programs use less than a "
        "tenth of the machine."
    ),
    why=(
        "A core reaches the memory of its own node faster than that of another one, and threads of one operation "
        "exchange data between sockets."
    ),
    advice=(
        "Bind the program to one node: numactl --cpunodebind=0 --membind=0 before the command.",
        "Several processes, such as ranks or servers: one for each node, each bound to its own.",
        "Bind OpenMP's threads: OMP_PROC_BIND=close, OMP_PLACES=cores; Intel's: KMP_AFFINITY=compact.",
    ),
    misleads=(
        "It is a hint: what it costs was not measured. A program that needs the memory bandwidth of all sockets is "
        "right to use them; compare both with traceviz compare."
    ),
    references=("https://www.intel.com/content/www/us/en/developer/articles/guide/tensorflow-performance-tuning.html",),
    section="host",
    severity="hint",
    certainty="suspected",
    tables=HOST,
)
