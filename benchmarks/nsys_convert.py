"""Measure convert and report on a large Nsight Systems database, against pandas and NVIDIA's own `nsys stats`.

    python benchmarks/nsys_convert.py                      3 M API calls, 1.5 M kernels, 3 runs of each
    python benchmarks/nsys_convert.py --rows-scale 0.01 --runs 1

Needs traceviz installed for this interpreter, 0.3 GB of disk, 2 GB of memory (for pandas) and, for the comparison
with `nsys stats`, nsys on PATH. It measures whole commands, not the reading of the database alone.

Each route runs in its own process, in turn so that a slow moment of the machine affects all of them. It prints
the median wall time, the peak memory of the process (or of its largest child), and the ratio
to traceviz. Before anything is timed, it compares the totals of our API summary with those of `nsys stats`.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import big_nsys

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Route:
    """One way to do a job: a command; ``job`` groups routes that are compared; ``output`` is removed before a run."""

    job: str
    name: str
    command: tuple[str, ...]
    output: Path | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """Wall time and peak memory of one run."""

    seconds: float
    peak_bytes: int


def main() -> None:
    """Make the database where needed, measure, print the table."""
    options = parse_options()
    folder = options.data or Path(tempfile.mkdtemp(prefix="nsys_convert."))
    try:
        trace = database(folder, options.rows_scale)
        routes = routes_for(trace, folder)
        check_same_answer(trace)
        runs = measure(routes, options.runs)
        print(f"\nmedian of {options.runs} runs, alternating, {os.cpu_count()} CPUs; right: multiples of traceviz\n")
        print_table(routes, runs)
    finally:
        if options.data is None:
            shutil.rmtree(folder)


def parse_options() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each route (default 3)")
    parser.add_argument("--rows-scale", type=float, default=1.0, help="factor on the number of rows (default 1)")
    parser.add_argument("--data", type=Path, help="folder to keep the database in, for the next time")
    return parser.parse_args()


def database(folder: Path, scale: float) -> Path:
    """The database at this scale, made unless ``folder`` holds it already."""
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / f"big-{scale:g}.sqlite"
    if not trace.exists():
        begin = time.perf_counter()
        unfinished = trace.with_suffix(".unfinished")
        big_nsys.make(unfinished, scale)
        unfinished.rename(trace)
        print(f"made {trace.name}, {trace.stat().st_size / 1e6:,.0f} MB, in {time.perf_counter() - begin:.1f} s")
    return trace


def routes_for(trace: Path, folder: Path) -> tuple[Route, ...]:
    """Every route on ``trace``; traceviz first in each job. Without nsys its route is left out, with a message."""
    ours, pandas = folder / "traceviz_out", folder / "pandas_out"
    routes = [
        Route("convert", "traceviz convert", (traceviz(), "convert", str(trace), "-o", str(ours)), ours),
        Route("convert", "pandas", (sys.executable, str(HERE / "pandas_route.py"), str(trace), str(pandas)), pandas),
        Route("API summary", "traceviz report", (traceviz(), "report", str(trace), "--section", "cuda_api")),
    ]
    if nsys := nsys_stats(trace):
        routes.append(Route("API summary", "nsys stats", (*nsys, "--format", "table")))
    else:
        print("nsys is not on PATH: nsys stats is not measured")
    return tuple(routes)


def traceviz() -> str:
    """The command beside this interpreter."""
    return str(Path(sys.executable).with_name("traceviz"))


def nsys_stats(trace: Path) -> tuple[str, ...] | None:
    """The API summary of the installed nsys; the report was renamed in 2023. ``None`` without nsys."""
    nsys = shutil.which("nsys")
    if nsys is None:
        return None
    version = subprocess.run([nsys, "--version"], capture_output=True, text=True, check=True).stdout
    year = re.search(r"(\d{4})\.", version)
    report = "cudaapisum" if year and int(year[1]) < 2023 else "cuda_api_sum"
    return (nsys, "stats", "--report", report, "--force-overwrite", "true", str(trace))


def check_same_answer(trace: Path) -> None:
    """Exit unless our totals per API equal those of nsys, to the nanosecond."""
    ours = our_totals(trace)
    theirs = nsys_totals(trace)
    if theirs is not None and ours != theirs:
        sys.exit(f"the totals differ: traceviz {ours}, nsys {theirs}")
    beside = "equal to nsys stats" if theirs is not None else "not compared with nsys stats"
    print(f"{len(ours)} API names, {sum(ours.values()):,} ns in total, {beside}")


def our_totals(trace: Path) -> dict[str, int]:
    """Total time per API name in traceviz's report."""
    command = [traceviz(), "report", str(trace), "--section", "cuda_api", "--format", "json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    section = next(section for section in report["sections"] if section["slug"] == "cuda_api")
    grid = next(block for block in section["blocks"] if "rows" in block)
    return {row["name"]: row["total_ns"] for row in grid["rows"]}


def nsys_totals(trace: Path) -> dict[str, int] | None:
    """Total time per API name as nsys computes it, which leaves version suffixes of five digits in the name."""
    command = nsys_stats(trace)
    if command is None:
        return None
    text = subprocess.run([*command, "--format", "csv"], capture_output=True, text=True, check=True).stdout
    lines = text.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("Time"))
    rows = csv.DictReader(io.StringIO("\n".join(line for line in lines[header:] if line)))
    return {re.sub(r"_v\d{4,}$", "", row["Name"]): int(row["Total Time (ns)"]) for row in rows}


def measure(routes: tuple[Route, ...], runs: int) -> dict[str, list[Measurement]]:
    """Run all routes ``runs`` times in turn."""
    found: dict[str, list[Measurement]] = {route.name: [] for route in routes}
    for _ in range(runs):
        for route in routes:
            if route.output is not None:
                shutil.rmtree(route.output, ignore_errors=True)
            found[route.name].append(run(route.command))
    return found


def run(command: tuple[str, ...]) -> Measurement:
    """Run a command to its end.

    ``wait4`` gives the largest resident set among the process and the children that it waited for.
    """
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begin
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}:\n{message.decode(errors='replace')}")
    return Measurement(seconds, usage.ru_maxrss * 1024)


def print_table(routes: tuple[Route, ...], runs: dict[str, list[Measurement]]) -> None:
    """One line per route; the first route of a job is what the others are compared with."""
    print(f"{'job':12} {'route':18} {'median':>9} {'min':>9} {'max':>9} {'peak':>9}  {'time':>7} {'memory':>7}")
    first: dict[str, tuple[float, float]] = {}
    for route in routes:
        seconds = [one.seconds for one in runs[route.name]]
        median, peak = statistics.median(seconds), max(one.peak_bytes for one in runs[route.name])
        base_seconds, base_peak = first.setdefault(route.job, (median, peak))
        print(
            f"{route.job:12} {route.name:18} {median:7.2f} s {min(seconds):7.2f} s {max(seconds):7.2f} s "
            f"{peak / 1e6:6.0f} MB  {median / base_seconds:6.2f}× {peak / base_peak:6.2f}×"
        )


if __name__ == "__main__":
    main()
