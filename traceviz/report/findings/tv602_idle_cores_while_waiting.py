"""Finding TV602: idle cores while waiting."""

from traceviz.report.findings.record import HOST, FindingRecord

RECORD = FindingRecord(
    code="TV602",
    slug="idle-cores-while-waiting",
    what=(
        "More than a quarter of the program's cores (physical ones, where they are known) are idle, while its steps "
        "wait for the host in at least 20 % of their time; where no steps were recorded, its GPUs work in less than "
        "half of it."
    ),
    why="What the steps wait for could be done by cores that are idle, or waits for something other than the CPU.",
    advice=(
        "More workers for the input (num_workers, num_parallel_calls), up to the number of physical cores.",
        "The host computes the steps: as many threads per operation as there are physical cores.",
        "Cores idle and storage read all the time: keep data nearer, in fewer and larger files, or in memory.",
    ),
    misleads="Short captures in which workers start. Work that one part of waits for the other cannot be split.",
    references=("https://www.tensorflow.org/guide/data_performance",),
    section="host",
    part_of=("TV601",),
    half_of=("TV610", "TV611", "TV612", "TV613", "TV614", "TV615", "TV616", "TV622"),
    certainty="suspected",
    tables=HOST,
)
