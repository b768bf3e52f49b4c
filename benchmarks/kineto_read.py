"""Measure how fast traceviz reads a PyTorch trace, against other ways to read it.

    python benchmarks/kineto_read.py                            a generated trace of 1.1 M events, 3 runs of each route
    python benchmarks/kineto_read.py --trace FILE               any trace
    python benchmarks/kineto_read.py --hta OTHER/bin/python     HolisticTraceAnalysis of another environment as well

Routes, each in its own process, in turn so that a slow moment of the machine affects all of them:

    tables      traceviz.open: every table of the trace in memory
    decode      the decoder alone: events and their arguments as columns
    tables (msgspec), decode (msgspec)   the same without anything compiled
    json        json.load, and nothing more
    pandas      json.load, a DataFrame of the events, and a column for each argument: the start of an analysis in pandas
    hta         HolisticTraceAnalysis: TraceAnalysis on a folder that holds the trace as rank 0

The trace is read plain and as gzip. Time covers the work, without imports; memory is the largest resident
set of the process, with imports. Routes whose package is missing are left out, with a message.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from side_by_side import Work, measure, print_table, run_here


def tables(path: Path) -> Work:
    """Count the rows of all tables that contain complete events."""
    from pyarrow import array

    from traceviz.api import open_trace

    import_module("traceviz.parsers.kineto.tables")
    array([0])  # imports pandas, if it is installed

    def work() -> int:
        trace = open_trace(path)
        of_events = ("host_ops", "cuda_api", "kernels", "memcpy", "memset", "sync", "overhead", "device_ops")
        return sum(trace.arrow(name).num_rows for name in trace if name in of_events)

    return work


def decode(path: Path) -> Work:
    """Count complete events."""
    from pyarrow import array

    from traceviz.parsers.kineto.decode.document import decode as read

    array([0])  # imports pandas, if it is installed

    def work() -> int:
        return int((read(path).events["phase"] == "X").sum())

    return work


def without_compiled(route: Callable[[Path], Work]) -> Callable[[Path], Work]:
    """Return the same route, reading through msgspec."""

    def chosen(path: Path) -> Work:
        os.environ["TRACEVIZ_SCANNER"] = "msgspec"
        return route(path)

    return chosen


def plain_json(path: Path) -> Work:
    """Count complete events."""

    def work() -> int:
        return sum(event.get("ph") == "X" for event in load(path)["traceEvents"])

    return work


def pandas(path: Path) -> Work:
    """Count complete events, each with all arguments as columns."""
    import pandas as pd

    def work() -> int:
        events = pd.DataFrame(load(path)["traceEvents"])
        events = events[events["ph"] == "X"].reset_index(drop=True)
        arguments = pd.DataFrame([{} if isinstance(one, float) else one for one in events.pop("args")])
        return len(events.join(arguments.add_prefix("arg ")))

    return work


def load(path: Path) -> dict[str, list[dict[str, object]]]:
    """Return the whole file as Python objects."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        found: dict[str, list[dict[str, object]]] = json.load(file)
    return found


def hta(path: Path) -> Work:
    """Count the events that it keeps: those with a duration and a category."""
    from hta.trace_analysis import TraceAnalysis

    def work() -> int:
        analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir="")
        return len(analysis.t.get_trace(0))

    return work


ROUTES: dict[str, Callable[[Path], Work]] = {
    "tables": tables,
    "decode": decode,
    "tables (msgspec)": without_compiled(tables),
    "decode (msgspec)": without_compiled(decode),
    "json": plain_json,
    "pandas": pandas,
    "hta": hta,
}
FOREIGN = ("hta",)


# A generated trace ----------------------------------------------------------------------------------------------------


def step_events() -> list[str]:
    """Return the events of one training step of a network of 54 layers, as PyTorch writes them.

    ``@`` followed by digits and a second ``@`` is a time in thousandths of a microsecond from the start of the step,
    ``#`` a number that grows from step to step.
    """
    events, clock = [], 0
    for layer in range(54):
        for direction in ("", "Backward0"):
            for name in ("conv2d", "batch_norm", "relu_"):
                events += operation(f"aten::{name}{direction}", layer, clock, events_before=len(events))
                clock += 260_000
    return events


def operation(name: str, layer: int, begin: int, events_before: int) -> list[str]:
    """Return an operation: three nested host events, a launch and its kernel, arrows, frames and an allocation."""
    number = events_before
    shape = f"[[32, {64 << layer // 14}, {56 >> layer // 14}, {56 >> layer // 14}], [], [3, 3]]"
    host = '"pid": 4711, "tid": 4711'
    operations = [
        f'{{\n    "ph": "X", "cat": "cpu_op", "name": "{name if depth == 0 else name + f"_{depth}"}", {host},\n    '
        f'"ts": @{begin + depth * 5_000}@, "dur": {180 - 20 * depth}.{number % 1000:03},\n    "args": {{\n      '
        f'"External id": #{number + depth},"Record function id": 0, "Sequence number": #{number}, "Fwd thread id": 0, '
        f'"Concrete Inputs": ["", "", "1"], "Input type": ["float", "", "ScalarList"], "Input Strides": [[1], [], []], '
        f'"Input Dims": {shape}, "Ev Idx": #{number}\n    }}\n  }}'
        for depth in range(3)
    ]
    frames = [
        f'{{\n    "ph": "X", "cat": "python_function", "name": "nn/modules/module.py({1500 + depth}): _call_impl", '
        f'{host},\n    "ts": @{begin + depth * 1_000}@, "dur": 230.250,\n    "args": {{\n      '
        f'"Python parent id": #{number + depth}, "Python id": #{number + depth + 1}, "Ev Idx": #{number}\n    }}\n  }}'
        for depth in range(2)
    ]
    launch = (
        f'{{\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", {host},\n    "ts": @{begin + 40_000}@, '
        f'"dur": 6.125,\n    "args": {{\n      "External id": #{number + 2}, "cbid": 211, '
        f'"correlation": #{number}\n    }}\n  }}'
    )
    kernel = (
        f'{{\n    "ph": "X", "cat": "kernel", "name": "void cudnn::{name[6:]}_kernel<float, {layer % 7}>(float const*, '
        f'float*, int, int)", "pid": 0, "tid": 7,\n    "ts": @{begin + 60_000}@, "dur": 171.{number % 1000:03},\n    '
        f'"args": {{\n      "External id": #{number + 2}, "queued": 0, "device": 0, "context": 1, "stream": 7, '
        f'"correlation": #{number}, "registers per thread": {32 + layer}, "shared memory": {layer * 512}, '
        f'"blocks per SM": {1 + layer / 8:.6f}, "warps per SM": {8 + layer:.6f}, "grid": [{784 + layer}, 1, 1], '
        f'"block": [256, 1, 1], "est. achieved occupancy %": {20 + layer}\n    }}\n  }}'
    )
    arrows = [
        f'{{\n    "ph": "{phase}", "id": #{number}, {where}, "ts": @{begin + at}@,\n    "cat": "ac2g", "name": "ac2g"'
        f"{end}\n  }}"
        for phase, where, at, end in (
            ("s", host, 40_000, ""),
            ("f", '"pid": 0, "tid": 7', 60_000, ', "bp": "e"'),
        )
    ]
    memory = (
        f'{{\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", {host},\n    '
        f'"ts": @{begin + 30_000}@,\n    "args": {{\n      "Total Reserved": 4194304000, "Total Allocated": '
        f'{2_000_000_000 + number * 512}, "Bytes": {512 << layer % 12}, "Addr": {139_637_976_727_552 + number * 512}, '
        '"Device Id": 0, "Device Type": 1\n    }\n  }'
    )
    return [*operations, *frames, launch, kernel, *arrows, memory]


def made(folder: Path, scale: float) -> Path:
    """Generate a trace."""
    path = folder / "made.pt.trace.json"
    begin = time.perf_counter()
    step = ",\n  ".join(step_events())
    pieces = [piece.partition("@")[::2] for piece in step.split('"ts": @')]  # ("12000", ", the rest")
    steps = max(1, round(340 * scale))
    with path.open("w") as file:
        file.write(
            '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "name": "NVIDIA A100-SXM4-80GB", '
            '"totalGlobalMem": 85198045184, "computeMajor": 8, "computeMinor": 0, "numSms": 108}\n  ],\n  '
            '"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},\n  "traceEvents": [\n  '
        )
        for number in range(steps):
            file.write(",\n  " * (number > 0) + one_step(pieces, number))
        file.write('\n  ],\n  "traceName": "made.pt.trace.json"\n}\n')
    print(f"made {steps * len(step_events()):,} events in {time.perf_counter() - begin:.1f} s")
    return path


def one_step(pieces: list[tuple[str, str]], number: int) -> str:
    """Return the text of step ``number``: times and identifiers are shifted."""
    base, first = 1_700_000_000_000_000_000 + number * 90_000_000, number * 10_000
    texts = [pieces[0][0]]
    for time_text, rest in pieces[1:]:
        now = base + int(time_text)
        texts.append(f'"ts": {now // 1000}.{now % 1000:03}{rest}')
    numbers = "".join(texts).split("#")
    shifted = [numbers[0]]
    for text in numbers[1:]:
        digits = len(text) - len(text.lstrip("0123456789"))
        shifted.append(f"{first + int(text[:digits])}{text[digits:]}")
    annotation = (
        f'{{\n    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{number}", "pid": 4711, "tid": 4711,\n    '
        f'"ts": {base // 1000}.000, "dur": 89000.000,\n    "args": {{\n      "External id": {first}\n    }}\n  }},\n  '
    )
    return annotation + "".join(shifted)


# Measuring ------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Run the benchmark, or one route in its own process."""
    options = parse_options()
    if options.route:
        run_here(ROUTES[options.route](options.trace))
        return
    folder = Path(tempfile.mkdtemp())
    try:
        for trace in both_ways(options.trace or made(folder, options.scale), folder):
            print(f"\n{trace.name}: {trace.stat().st_size / 1e6:,.1f} MB; {options.runs} runs of each route")
            print_table(measure(commands(trace, options), options.runs))
    finally:
        shutil.rmtree(folder)


def parse_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, help="trace to read instead of a generated one")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor on the size of the generated trace (default 1)"
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each route (default 3)")
    parser.add_argument("--hta", metavar="PYTHON", help="Python that has HolisticTraceAnalysis")
    parser.add_argument("--only", nargs="+", choices=list(ROUTES), help="routes to measure (all)")
    parser.add_argument("--route", choices=list(ROUTES), help=argparse.SUPPRESS)
    return parser.parse_args()


def both_ways(trace: Path, folder: Path) -> tuple[Path, ...]:
    """Return the trace plain and as gzip; a trace given as gzip is read as it is."""
    if trace.suffix == ".gz":
        return (trace,)
    packed = folder / f"{trace.name}.gz"
    with trace.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, 2**20)
    return trace, packed


def commands(trace: Path, options: argparse.Namespace) -> dict[str, list[str | Path]]:
    """Return the command of each route."""
    pythons = dict.fromkeys(FOREIGN, options.hta or sys.executable)
    return {
        route: [pythons.get(route, sys.executable), __file__, "--route", route, "--trace", trace]
        for route in options.only or ROUTES
    }


if __name__ == "__main__":
    main()
