"""Growth of traceviz's time and memory with the events of a trace: nsys databases of 0.45, 4.5 and 45 million.

Run by ``whole.py --growth``. The exponent is the slope of log time, or log memory, over log events: 1 is linear. From
4.5 million on, the start-up of a command, and the libraries in its memory, hardly count.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import made_traces
from nsys_answers import traceviz
from side_by_side import Usage, run_alone
from whole_tables import Row

SIZES = (0.45, 4.5, 45.0)
"""Million events."""
PER_SCALE = 4.5
"""Million events at scale 1."""
LARGE = 45.0
"""Million events from which everything is run once."""
LITTLE = "2GB"


def measured(folder: Path, pythons: Mapping[str, str], runs: int, most: float) -> list[Row]:
    """Return the rows of each job for each size, and of the exponents."""
    sizes = [size for size in SIZES if size <= most]
    found: dict[tuple[str, str], dict[float, list[Usage]]] = {}
    rows: list[Row] = []
    for size in sizes:
        trace = made_traces.nsys_database(folder, size / PER_SCALE)
        for _ in range(1 if size >= LARGE else runs):
            for route, python in pythons.items():
                for job, usage in one_turn(trace, folder, python).items():
                    found.setdefault((job, route), {}).setdefault(size, []).append(usage)
    for (job, route), by_size in found.items():
        first = found[job, next(iter(pythons))]
        rows += [Row.of(f"{job}, {size:g} M", route, usages, first[size]) for size, usages in by_size.items()]
        rows += exponents(job, route, by_size)
    if sizes:
        rows += within_memory(made_traces.nsys_database(folder, sizes[-1] / PER_SCALE), folder, sizes[-1])
    return rows


def one_turn(trace: Path, folder: Path, python: str) -> dict[str, Usage]:
    """Run each job once."""
    out = folder / "converted"
    shutil.rmtree(out, ignore_errors=True)
    commands: dict[str, Sequence[str | Path]] = {
        "nsys report": (traceviz(python), "report", trace),
        "nsys section": (traceviz(python), "report", trace, "--section", "cuda_api"),
        "nsys convert": (traceviz(python), "convert", trace, "-o", out),
        "nsys folder": (traceviz(python), "report", out),
    }
    found = {}
    for job, command in commands.items():
        print(f"{job} of {trace.name} ...", file=sys.stderr)
        usage = run_alone(command, folder)
        if usage.code:
            print(f"{job} of {trace.name} is not measured: {usage.errors.strip()[-500:]}", file=sys.stderr)
        else:
            found[job] = usage
    shutil.rmtree(out, ignore_errors=True)
    return found


def exponents(job: str, route: str, by_size: Mapping[float, Sequence[Usage]]) -> list[Row]:
    """Return the slope over all sizes, and without the smallest; nothing for one size."""
    values: dict[str, dict[float, float]] = {
        "wall": {size: statistics.median(one.seconds for one in usages) for size, usages in by_size.items()},
        "CPU": {size: statistics.median(one.cpu_seconds for one in usages) for size, usages in by_size.items()},
        "peak": {size: max(one.peak_bytes for one in usages) for size, usages in by_size.items()},
    }
    sizes = sorted(by_size)
    spans = {f"from {begin:g} M to {sizes[-1]:g} M": sizes[at:] for at, begin in enumerate(sizes[:-1])}
    return [
        Row.said(f"{job}, exponent", f"{route}, {name}", {of: slope(values[of], span) for of in values})
        for name, span in spans.items()
    ]


def slope(values: Mapping[float, float], sizes: Sequence[float]) -> str:
    """Return the slope of log value over log size."""
    logs = [math.log(size) for size in sizes], [math.log(values[size]) for size in sizes]
    return f"{statistics.linear_regression(*logs).slope:.2f}"


def within_memory(trace: Path, folder: Path, size: float) -> list[Row]:
    """Report on the largest trace with little memory, and check that the figures are the same."""
    job = f"nsys report, {size:g} M, --max-memory {LITTLE}"
    plain, little = (
        run_alone((traceviz(), "report", trace, "--format", "json", *words), folder)
        for words in ((), ("--max-memory", LITTLE))
    )
    if little.code:
        reason = next((line for line in little.errors.splitlines() if line.strip()), f"exit code {little.code}")
        return [Row.said(job, f"traceviz: {reason}", {"wall": "refused"})]
    same = "the same figures" if document(plain) == document(little) else "other figures"
    return [Row.of(job, f"traceviz, {same}", [little], [plain])]


def document(usage: Usage) -> Any:
    """Return a report as JSON; ``None`` if there is none."""
    return json.loads(usage.output) if usage.code == 0 else None
