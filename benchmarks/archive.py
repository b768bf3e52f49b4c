"""Archives of many small traces against one pandas process: adding, the report, three queries, and how cost grows.

    python benchmarks/archive.py                       10, 100 and 1,000 traces
    python benchmarks/archive.py --counts 10 100 --runs 3

``archive_traces.py`` makes the traces: a third each of Nsight Systems, PyTorch and XPlane, no two alike. The pandas
code is in ``archive_by_hand.py``; a line below the times says what it leaves out. Every route runs in its own process,
and the counts of all routes must agree. Libraries are loaded and the two Dask workers started before the clock starts;
a route with ``--workers`` starts its processes within the measured time, as a user would. One process of traceviz uses
all cores for a query; pandas uses one.

Growth is the factor in time from one count to the next. The exponent is the slope of log time over log count: 1 is
linear; less than 1 means that a part does not depend on the count.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from archive_traces import make
from side_by_side import Measurement, measure, run_here

if TYPE_CHECKING:
    from traceviz.archive.runners.base import Runner

QUERIES = {
    "kernels by name": "SELECT name, count(*) AS n, sum(dur_ns) AS ns FROM kernels GROUP BY name ORDER BY ns DESC",
    "API share": """
        SELECT traces.format, name, sum(dur_ns) AS ns, sum(dur_ns) / sum(sum(dur_ns)) OVER (PARTITION BY traces.format)
        FROM cuda_api JOIN traces USING (trace_id) GROUP BY traces.format, name ORDER BY ns DESC""",
    "launch delay": """
        SELECT traces.format, count(*) AS n, avg(kernels.start_ns - cuda_api.start_ns) AS delay_ns
        FROM kernels JOIN cuda_api USING (trace_id, process_id, correlation_id) JOIN traces USING (trace_id)
        GROUP BY ALL""",
}
"""Queries over one table, two tables, and three tables."""
HAND = {
    "report": "times",
    "kernels by name": "kernels_by_name",
    "API share": "api_share",
    "launch delay": "launch_delay",
}
"""Functions of ``archive_by_hand``."""
NOT_BY_HAND = """
By hand, add keeps 2 of up to 30 tables of each trace (kernels and CUDA API calls): it neither scrubs what is private,
nor judges a trace, nor knows it when it comes again, nor survives a trace that is damaged. The report by hand is device
and API time of every trace: no verdicts, findings, stakes or outliers.
"""
PANDAS, ONE, LOCAL, DASK = "pandas, by hand", "traceviz, 1 process", "traceviz, processes", "traceviz, Dask ×2"
PER_PART = {
    "kernels by name": (
        "SELECT name, count(*) AS n, sum(dur_ns) AS ns FROM kernels GROUP BY name",
        "SELECT name, sum(n)::BIGINT AS n, sum(ns)::BIGINT AS ns FROM parts GROUP BY name ORDER BY ns DESC",
    ),
    "API share": (
        """SELECT traces.format, name, sum(dur_ns) AS ns FROM cuda_api JOIN traces USING (trace_id) GROUP BY ALL""",
        """SELECT format, name, sum(ns) AS ns, sum(ns) / sum(sum(ns)) OVER (PARTITION BY format)
        FROM parts GROUP BY format, name ORDER BY ns DESC""",
    ),
    "launch delay": (
        """SELECT traces.format, count(*) AS n, sum(kernels.start_ns - cuda_api.start_ns) AS delay_ns
        FROM kernels JOIN cuda_api USING (trace_id, process_id, correlation_id) JOIN traces USING (trace_id)
        GROUP BY ALL""",
        "SELECT format, sum(n)::BIGINT AS n, sum(delay_ns) / sum(n) AS delay_ns FROM parts GROUP BY format",
    ),
}
"""The same queries for workers: the query of each part of the traces, and the query of their results."""


def main() -> None:
    """Measure everything, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[10, 100, 1000], help="how many traces")
    parser.add_argument("--runs", type=int, default=1, help="how often everything is done")
    parser.add_argument("--folder", type=Path, help="where to keep traces and archives; by default nowhere")
    parser.add_argument("--route", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.route:
        what, route, *places = arguments.route
        run_route(what, route, [Path(place) for place in places])
        return
    with tempfile.TemporaryDirectory() as temporary:
        compare(arguments.folder or Path(temporary), sorted(arguments.counts), arguments.runs)


def compare(folder: Path, counts: list[int], runs: int) -> None:
    """Measure all counts, the smallest first."""
    times: dict[tuple[str, str], dict[int, float]] = {}
    sizes: dict[int, int] = {}
    for count in counts:
        sources = folder / f"traces-{count}"
        make(sources, count)
        sizes[count] = sum(path.stat().st_size for path in sources.iterdir())
        print(f"{count:,} traces, {sizes[count] / 1e6:.1f} MB", file=sys.stderr)
        for task in ("add", "report", *QUERIES):
            for route, measured in measured_routes(task, folder, sources, runs).items():
                seconds = statistics.median(measurement.seconds for measurement in measured)
                times.setdefault((task, route), {})[count] = seconds
    print_times(times, counts)
    print_rates(times, counts, sizes)


def measured_routes(task: str, folder: Path, sources: Path, runs: int) -> dict[str, list[Measurement]]:
    """Return the measurements of all routes to the same result, which must have equal counts."""
    routes = (PANDAS, ONE, DASK) if task == "report" else (PANDAS, ONE, LOCAL, DASK)
    commands = {
        route: (sys.executable, __file__, "--route", task, route, str(sources), str(folder / f"{route}-{sources.name}"))
        for route in routes
    }
    measurements = measure(commands, runs)
    counted = {route: of_route[0].counted for route, of_route in measurements.items()}
    if len(set(counted.values())) > 1:
        sys.exit(f"{task}: the routes do not agree: {counted}")
    return measurements


def run_route(task: str, route: str, paths: list[Path]) -> None:
    """Load what the route needs, then do it against the clock."""
    sources, target = paths
    if route == PANDAS:
        run_here(_by_hand(task, sources, target))
        return
    with _runner(route) as runner:
        on_workers = None if route == ONE else runner
        run_here(_adding(sources, target, runner) if task == "add" else _asking(task, target, on_workers))


def _by_hand(task: str, sources: Path, target: Path) -> Callable[[], int]:
    import archive_by_hand as hand

    if task == "add":
        shutil.rmtree(target, ignore_errors=True)
        return lambda: hand.add(sources, target)
    function: Callable[[Path], int] = getattr(hand, HAND[task])
    return lambda: function(target)


@contextmanager
def _runner(route: str) -> Iterator[Runner]:
    """Yield the runner of a route."""
    from traceviz.archive.runners.local import LocalRunner, SerialRunner

    if route != DASK:
        yield LocalRunner() if route == LOCAL else SerialRunner()
        return
    from distributed import Client, LocalCluster

    from traceviz.archive.runners.dask import DaskRunner

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        yield DaskRunner(client)


def _adding(sources: Path, target: Path, runner: Runner) -> Callable[[], int]:
    from traceviz.archive.ingest.add import add
    from traceviz.archive.ingest.ingest import IngestOptions
    from traceviz.archive.storage.store import Store

    shutil.rmtree(target, ignore_errors=True)

    def adding() -> int:
        done = add(Store.at(target), [str(sources)], IngestOptions(), runner)
        for trace in done.quarantined:
            print(f"{trace.source} was quarantined: {trace.error}", file=sys.stderr)
        for refused in done.refused:
            print(f"{refused.name} was refused: {refused.why}", file=sys.stderr)
        return done.added

    return adding


def _asking(task: str, target: Path, runner: Runner | None) -> Callable[[], int]:
    """Return the work on an archive that the same route made; with a runner, by its workers."""
    from traceviz.archive.query.engine import Engine
    from traceviz.archive.query.shards import engine_over_parts
    from traceviz.archive.request import ReportRequest, report_for
    from traceviz.archive.runners.choose import run_one
    from traceviz.archive.storage.store import Store

    store = Store.at(target)

    def report() -> int:
        request = ReportRequest(store)
        population = report_for(request) if runner is None else run_one(runner, report_for, request)
        return int(str(next(fact.value for fact in population.run if fact.key == "traces")))

    def query() -> int:
        per_part, second = PER_PART[task]
        with Engine(store) if runner is None else engine_over_parts(store, per_part, runner) as engine:
            answer = engine.sql(QUERIES[task] if runner is None else second)
        return sum(answer["n"].to_pylist()) if "n" in answer.column_names else answer.num_rows

    return report if task == "report" else query


def print_times(times: dict[tuple[str, str], dict[int, float]], counts: list[int]) -> None:
    """Print a line for every route: seconds for each count, multiples of pandas at the largest, and the growth."""
    print(f"{os.cpu_count()} cores; seconds\n")
    columns = " ".join(f"{count:>9,}" for count in counts)
    growths = " ".join(f"{f'→ {count:,}':>8}" for count in counts[1:])
    print(f"{'work':16} {'route':20} {columns} {'×pandas':>8} {growths} {'exponent':>8}")
    for (task, route), seconds in times.items():
        cells = " ".join(f"{seconds[count]:9.3f}" for count in counts)
        ratio = seconds[counts[-1]] / times[task, PANDAS][counts[-1]]
        grown = " ".join(f"{seconds[after] / seconds[before]:7.1f}×" for before, after in pairwise(counts))
        print(f"{task:16} {route:20} {cells} {ratio:7.2f}× {grown} {exponent(seconds):>8}")
    print(NOT_BY_HAND)


def print_rates(times: dict[tuple[str, str], dict[int, float]], counts: list[int], sizes: dict[int, int]) -> None:
    """Print the traces and the bytes that are added per second, for each count."""
    print(f"{'add':37} " + " ".join(f"{f'of {count:,}':>20}" for count in counts))
    for (task, route), seconds in times.items():
        if task == "add":
            rates = " ".join(
                f"{count / seconds[count]:8.1f}/s {sizes[count] / 1e6 / seconds[count]:5.2f} MB/s" for count in counts
            )
            print(f"{'':16} {route:20} {rates}")


def exponent(seconds: dict[int, float]) -> str:
    """Return the slope of log time over log count."""
    if len(seconds) < 2:
        return "-"
    return f"{statistics.linear_regression([*map(math.log, seconds)], [*map(math.log, seconds.values())]).slope:.2f}"


if __name__ == "__main__":
    main()
