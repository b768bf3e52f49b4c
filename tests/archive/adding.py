"""A program that adds to an archive, for tests of what several of them do at once, and of being killed.

python -m tests.archive.adding ARCHIVE WORKERS SOURCE...
"""

import sys
from pathlib import Path

from traceviz.archive.ingest.add import add
from traceviz.archive.ingest.ingest import IngestOptions
from traceviz.archive.runners.local import LocalRunner, SerialRunner
from traceviz.archive.storage.layout import OWN_FILES
from traceviz.archive.storage.store import Store

SAMPLES = (
    "synthetic/healthy.sqlite",
    "synthetic/input_bound.sqlite",
    "synthetic/launch_bound.sqlite",
    "synthetic/gpu_keras_input_bound.xplane.pb",
    "synthetic/tpu_infeed_wait.xplane.pb",
    "synthetic/torch_healthy.pt.trace.json.gz",
    "synthetic/torch_input_bound_workers.pt.trace.json.gz",
    "synthetic/nvprof_torch_input_bound.nvvp",
)
"""Traces of all formats, quick to add."""


OPTIONS = IngestOptions()


def sources(samples):
    return [str(samples / name) for name in SAMPLES]


def tables_of(store):
    """Return all stored tables of every trace, without reports and without the time when it was added."""
    files = (name for name in store.sizes("traces") if Path(name).name not in OWN_FILES)
    return {name: store.read("traces", name) for name in files}


if __name__ == "__main__":
    place, workers, *named = sys.argv[1:]
    runner = LocalRunner(int(workers)) if int(workers) else SerialRunner()
    added = add(Store.at(place), named, OPTIONS, runner)
    sys.stdout.write(f"{added.added} {added.known} {len(added.quarantined)} {len(added.refused)}\n")
