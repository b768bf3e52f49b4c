"""Adds by processes and by Dask workers: seconds, and CPU time for each trace, with one worker, two and four.

    python benchmarks/archive_workers.py                    100 traces; 1, 2 and 4 workers

More workers than cores cannot be faster, but they show what a worker more costs: where the CPU time of a trace stays
the same, an add takes as much less time as there are more cores. CPU time is that of all processes, waited for: of the
one that adds, the workers, the scheduler. Start-up is kept apart: what a trace costs is the difference between an add
of all traces and one of a tenth of them, by their number. So is the time, which has no start-up either.

Polars has one thread in each worker: those of ``LocalRunner`` see to that themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from archive_traces import make

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceviz.archive.runners.base import Runner

ROUTES = ("processes", "Dask")


def main() -> None:
    """Measure all routes, or run one (``--route``)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="number of traces")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--route", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.route:
        _run(*arguments.route)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        many, few = folder / "many", folder / "few"
        make(many, arguments.count)
        make(few, max(arguments.count // 10, 1))
        more = arguments.count - max(arguments.count // 10, 1)
        print(f"{os.cpu_count()} cores, {arguments.count} traces\n")
        print(f"{'route':10} {'workers':>7} {'start-up, CPU':>14} {'CPU a trace':>12} {'traces a second':>16}")
        for route in ROUTES:
            for workers in arguments.workers:
                (cpu, wall), (cpu_few, wall_few) = (_measured(route, workers, place, folder) for place in (many, few))
                each = (cpu - cpu_few) / more
                start = cpu - each * arguments.count
                print(f"{route:10} {workers:7} {start:12.2f} s {each:10.3f} s {more / (wall - wall_few):16.1f}")


def _measured(route: str, workers: int, sources: Path, folder: Path) -> tuple[float, float]:
    """Return seconds of CPU and of the clock."""
    command = [sys.executable, __file__, "--route", route, str(workers), str(sources), str(folder / "archive")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    measured = json.loads(done.stdout.splitlines()[-1])
    return measured["cpu"], measured["wall"]


def _run(route: str, workers: str, sources: str, target: str) -> None:
    """Add the sources to a new archive, and print the times."""
    from traceviz.archive.ingest.add import add
    from traceviz.archive.ingest.ingest import IngestOptions
    from traceviz.archive.storage.store import Store

    shutil.rmtree(target, ignore_errors=True)
    with _runner(route, int(workers)) as runner:
        begin = time.perf_counter()
        done = add(Store.at(target), [sources], IngestOptions(), runner)
        wall = time.perf_counter() - begin
    if done.added != len(list(Path(sources).iterdir())):
        sys.exit(f"{done.added} traces were added.")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"cpu": sum(one.ru_utime + one.ru_stime for one in used), "wall": wall}))


@contextmanager
def _runner(route: str, workers: int) -> Iterator[Runner]:
    from traceviz.archive.runners.local import LocalRunner

    if route == "processes":
        yield LocalRunner(workers)
        return
    from distributed import Client, LocalCluster

    from traceviz.archive.runners.dask import DaskRunner

    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, env={"POLARS_MAX_THREADS": "1"}) as cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        yield DaskRunner(client)


if __name__ == "__main__":
    main()
