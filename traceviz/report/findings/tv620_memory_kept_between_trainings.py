"""Finding TV620: memory kept between trainings."""

from traceviz.report.findings.record import HOST, FindingRecord

RECORD = FindingRecord(
    code="TV620",
    slug="memory-kept-between-trainings",
    what=(
        "A process trains four times or more (calls of fit), and from the second training on, the program has more "
        "memory at the start of each than at the start of the one before: at least 64 MiB and 5 % more in all, with no "
        "more processes."
    ),
    why="A search over settings that runs in one process ends when the memory of the machine or the container is full.",
    advice=(
        "Keras: keras.backend.clear_session() and del model after each training.",
        "Keep the figures of each training, not its model, history or datasets; then gc.collect().",
        "Run each training in a process of its own: traceviz sweep does.",
    ),
    misleads="Caches that are being filled grow until they are full.",
    references=("https://keras.io/api/utils/config_utils/",),
    section="host",
    severity="hint",
    tables=HOST,
)
