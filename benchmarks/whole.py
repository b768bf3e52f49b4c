"""All that traceviz does to a large trace, in one table, beside other tools: time, CPU time and memory.

    python benchmarks/whole.py                          the table: about 9 minutes and 1.5 GB of disk
    python benchmarks/whole.py --scale 0.01 --runs 1    a small one: a minute
    python benchmarks/whole.py --only kineto xplane     only jobs whose names contain one of these
    python benchmarks/whole.py --other OLD/bin/python   another traceviz as well, such as that of an older commit
    python benchmarks/whole.py --growth                 0.45, 4.5 and 45 million events instead: 2.5 GB, 4 GB of memory
    python benchmarks/whole.py --growth --most 4.5      without the largest
    python benchmarks/whole.py --markdown               and the table goes into docs/performance.md

``--hta PYTHON`` names a Python that has HolisticTraceAnalysis, ``--oracle PYTHON`` one that has xprof and JAX (by
default TRACEVIZ_HTA and TRACEVIZ_ORACLE; ``make oracle`` installs them). Routes whose program or package is missing are
left out, with a message. ``--data FOLDER`` keeps the made traces for the next time.

The jobs, at scale 1:

    small trace          report of a sample of 105 kB: what a command costs before it works
    nsys report          the whole report of a database of 3 M API calls and 1.5 M kernels, 217 MB; nsys stats prints
                         its default reports
    nsys section         the section cuda_api alone; nsys stats prints its one report of it
    nsys convert         all tables as Parquet; pandas reads two tables with their names joined, and writes them
    nsys folder          the whole report of the converted folder
    nsys-rep             the report of a .nsys-rep of a million NVTX ranges, for the second time: what nsys exported was
                         kept. Beside it without the cache, and nsys stats, which keeps its database beside the report
    Kineto report        the whole report of 1.1 M events, 347 MB; HTA loads the trace, and no more
    XPlane tables        all tables of 3.7 M events, 92 MB, in memory; JAX ProfileData visits all events and stats
    XPlane report        the whole report; xprof makes the page of its input pipeline
    archive add          100 small traces of three formats, by two processes; pandas keeps two tables of each, in one

Every route is a process of its own, and the routes of a job take turns, so that a slow moment of the machine affects
all of them. What takes longer than 30 s is run once. *Wall* is from start to end of the process, imports included;
*work* is without imports, where a route is a function and no command. *CPU* is user and system time of the process and
of all children that it waited for; *peak* the largest resident set of one of these. Ratios are of medians (of the
peak: of the largest), to traceviz in the same job. Before anything is timed, our totals per API function are compared
with those of nsys stats, to the nanosecond.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import growth
import made_traces
from nsys_answers import check_same_answer, nsys_stats, traceviz
from side_by_side import Usage, run_alone
from whole_tables import Row, check_place, fill, machine, markdown, text

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
ONCE_S = 30.0
OURS, BEFORE = "traceviz", "traceviz before"
ADDED = 100


@dataclass(frozen=True, slots=True)
class Route:
    """One way to do a job.

    Args:
        name: Its name in the table.
        command: The command.
        output: File or folder that is removed before each run.
        first: A command that is run once before anything is timed.
        environment: Variables in addition to those of this process.
    """

    name: str
    command: Sequence[str | Path]
    output: Path | None = None
    first: Sequence[str | Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """Routes to the same result; traceviz is the first."""

    name: str
    routes: tuple[Route, ...]


def main() -> None:
    """Make missing traces, measure, print the table."""
    options = parse_options()
    part = "growth" if options.growth else "whole"
    if options.markdown:
        check_place(options.markdown, part)
    folder = (options.data or Path(tempfile.mkdtemp(prefix="whole."))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TRACEVIZ_CACHE"] = "0"  # only what a job wants is cached
    try:
        if options.growth:
            table = growth.measured(folder, ours_and_before(options), options.runs, options.most)
        else:
            table = [row for job in jobs(folder, options) for row in measured(job, folder, options.runs)]
    finally:
        if options.data is None:
            shutil.rmtree(folder)
    print(f"{machine()}\n\n{text(table)}")
    if options.markdown:
        fill(options.markdown, part, f"{machine()}\n\n{markdown(table)}")


def parse_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each route (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the size of all traces (default 1)")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="jobs to measure (all)")
    parser.add_argument("--other", metavar="PYTHON", help="Python of another traceviz")
    parser.add_argument("--hta", default=os.environ.get("TRACEVIZ_HTA"), metavar="PYTHON")
    parser.add_argument("--oracle", default=os.environ.get("TRACEVIZ_ORACLE"), metavar="PYTHON")
    parser.add_argument("--growth", action="store_true", help="how time and memory grow with the events")
    parser.add_argument("--most", type=float, default=45.0, help="with --growth: million events at most (default 45)")
    parser.add_argument("--data", type=Path, help="folder to keep the traces in, for the next time")
    parser.add_argument(
        "--markdown", type=Path, nargs="?", const=PAGE, help="page that gets the table (docs/performance.md)"
    )
    return parser.parse_args()


def ours_and_before(options: argparse.Namespace) -> dict[str, str]:
    """Return the Python of each measured traceviz, by the name of its route."""
    return {OURS: sys.executable, **({BEFORE: options.other} if options.other else {})}


# Measured jobs --------------------------------------------------------------------------------------------------------


def jobs(folder: Path, options: argparse.Namespace) -> list[Job]:
    """Return the requested jobs, and make their traces."""
    pythons, scale = ours_and_before(options), options.scale
    makers = {
        "small trace": lambda name: Job(name, reports(pythons, made_traces.SMALL)),
        "nsys report": lambda name: nsys_job(name, pythons, made_traces.nsys_database(folder, scale)),
        "nsys section": lambda name: nsys_job(
            name, pythons, made_traces.nsys_database(folder, scale), "--section", "cuda_api"
        ),
        "nsys convert": lambda name: convert_job(name, pythons, made_traces.nsys_database(folder, scale), folder),
        "nsys folder": lambda name: folder_job(name, pythons, made_traces.nsys_database(folder, scale), folder),
        "nsys-rep": lambda name: kept_job(name, pythons, made_traces.nsys_report(folder, scale), folder),
        "Kineto report": lambda name: kineto_job(name, pythons, made_traces.kineto_trace(folder, scale), options.hta),
        "XPlane tables": lambda name: tables_job(
            name, pythons, made_traces.xplane_capture(folder, scale), options.oracle
        ),
        "XPlane report": lambda name: xplane_job(
            name, pythons, made_traces.xplane_capture(folder, scale), options.oracle
        ),
        "archive add": lambda name: archive_job(
            name, pythons, made_traces.many_traces(folder, max(3, round(ADDED * scale))), folder
        ),
    }
    words = [word.lower() for word in options.only]
    chosen = [name for name in makers if not words or any(word in name.lower() for word in words)]
    if {"nsys report", "nsys section"} & set(chosen):
        check_same_answer(made_traces.nsys_database(folder, scale))
    return [makers[name](name) for name in chosen]


def reports(pythons: Mapping[str, str], trace: Path, *words: str) -> tuple[Route, ...]:
    """Return the report of a trace by each traceviz."""
    return tuple(Route(name, (traceviz(python), "report", trace, *words)) for name, python in pythons.items())


def nsys_job(name: str, pythons: Mapping[str, str], trace: Path, *words: str) -> Job:
    """Return the whole report of a database, or with ``words`` one section, and nsys stats of the same."""
    stats = nsys_stats(trace, everything=not words)
    return Job(name, (*reports(pythons, trace, *words), *([Route("nsys stats", stats)] if stats else [])))


def convert_job(name: str, pythons: Mapping[str, str], trace: Path, folder: Path) -> Job:
    """Return the conversion of a database to a folder of Parquet files."""
    out = folder / "converted"
    ours = (Route(name, (traceviz(python), "convert", trace, "-o", out), out) for name, python in pythons.items())
    return Job(name, (*ours, Route("pandas", (sys.executable, HERE / "pandas_route.py", trace, out), out)))


def folder_job(name: str, pythons: Mapping[str, str], trace: Path, folder: Path) -> Job:
    """Return the report of a folder that each traceviz converted itself."""
    routes = []
    for number, (route, python) in enumerate(pythons.items()):
        out = folder / f"converted-{trace.stem}-{number}"
        first = (traceviz(python), "convert", "--force", trace, "-o", out)
        routes.append(Route(route, (traceviz(python), "report", out), first=first))
    return Job(name, tuple(routes))


def kept_job(name: str, pythons: Mapping[str, str], report: Path | None, folder: Path) -> Job:
    """Return the second report of a .nsys-rep, the report without the cache, and nsys stats."""
    if report is None:
        print("nsys is not on PATH: .nsys-rep is not measured", file=sys.stderr)
        return Job(name, ())
    again = (traceviz(), "report", report)
    stats = nsys_stats(report, everything=True)
    return Job(
        name,
        (
            Route(f"{OURS}, again", again, first=again, environment={"TRACEVIZ_CACHE": str(folder / "cache")}),
            *reports(pythons, report),
            *([Route("nsys stats, again", stats, first=stats)] if stats else []),
        ),
    )


def kineto_job(name: str, pythons: Mapping[str, str], trace: Path, hta: str | None) -> Job:
    """Return the whole report, and HTA's loading of the trace."""
    script = HERE / "kineto_read.py"
    theirs = [Route("HTA, loading", (hta, script, "--route", "hta", "--trace", trace))] if hta else []
    return Job(name, (*reports(pythons, trace), *theirs))


def tables_job(name: str, pythons: Mapping[str, str], capture: Path, oracle: str | None) -> Job:
    """Return all tables in memory, and JAX's own reader."""
    routes = [Route(route, xplane_route(python, "tables", capture)) for route, python in pythons.items()]
    theirs = [Route("JAX ProfileData", xplane_route(oracle, "jax", capture))] if oracle else []
    return Job(name, (*routes, *theirs))


def xplane_job(name: str, pythons: Mapping[str, str], capture: Path, oracle: str | None) -> Job:
    """Return the whole report, and a page of xprof."""
    theirs = [Route("xprof, one page", xplane_route(oracle, "xprof", capture))] if oracle else []
    return Job(name, (*reports(pythons, capture), *theirs))


def xplane_route(python: str, route: str, capture: Path) -> tuple[str | Path, ...]:
    """Return a route of ``xplane_read.py`` under a Python."""
    return (python, HERE / "xplane_read.py", "--route", route, "--capture", capture)


def archive_job(name: str, pythons: Mapping[str, str], traces: Path, folder: Path) -> Job:
    """Return the addition of many small traces to a new archive."""
    out = folder / "archive"
    ours = (
        Route(name, (traceviz(python), "archive", "add", "--workers", "2", "--strict", out, traces), out)
        for name, python in pythons.items()
    )
    by_hand = (sys.executable, HERE / "archive.py", "--route", "add", "pandas, by hand", traces, out)
    return Job(name, (*ours, Route("pandas, by hand", by_hand, out)))


# Measuring ------------------------------------------------------------------------------------------------------------


def measured(job: Job, folder: Path, runs: int) -> list[Row]:
    """Return a row for each route of a job that can run here."""
    print(f"{job.name} ...", file=sys.stderr)
    found: dict[str, list[Usage]] = {}
    left_out: set[str] = set()
    for turn in range(runs):
        for route in job.routes:
            before = found.get(route.name, [])
            if route.name in left_out or (before and before[0].seconds > ONCE_S):
                continue
            if turn == 0 and route.first:
                one_run(route.first, folder, route)
            usage = one_run(route.command, folder, route)
            if usage is None:
                left_out.add(route.name)
            else:
                found.setdefault(route.name, []).append(usage)
    first = next(iter(found.values()), [])
    return [Row.of(job.name, name, usages, first) for name, usages in found.items()]


def one_run(command: Sequence[str | Path], folder: Path, route: Route) -> Usage | None:
    """Run a command once; return ``None`` if a package is missing. Any other failure ends the benchmark."""
    if route.output is not None:
        shutil.rmtree(route.output, ignore_errors=True)
    usage = run_alone(command, folder, route.environment)
    if usage.code == 0:
        return usage
    if "ModuleNotFoundError" in usage.errors:
        print(f"{route.name} is not measured: {usage.errors.splitlines()[-1]}", file=sys.stderr)
        return None
    sys.exit(f"{' '.join(map(str, command))} ended with {usage.code}:\n{usage.errors[-2000:]}")


if __name__ == "__main__":
    main()
