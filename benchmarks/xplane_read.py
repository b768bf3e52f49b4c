"""Measure how fast traceviz reads an XPlane capture, against other ways to read it.

    python benchmarks/xplane_read.py                          a generated capture of 3.7 M events, 3 runs of each route
    python benchmarks/xplane_read.py --capture FILE           any capture
    python benchmarks/xplane_read.py --tensorflow 5           record 5 seconds with TensorFlow's Python tracer
    python benchmarks/xplane_read.py --python OTHER/bin/python    TensorFlow, JAX and xprof of another environment

Routes, each in its own process, in turn so that a slow moment of the machine affects all of them:

    tables      traceviz.open: every table of the capture in memory
    scan        the scanner alone: events and stats as columns
    tables (protobuf), scan (protobuf)   the same without anything compiled
    protobuf    the generated classes, every event and every stat visited: a script without other tools. The classes
                are TensorFlow's, else the same made at run time
    jax         jax.profiler.ProfileData, every event and every stat visited
    xprof       xprof's own conversion for its input-pipeline page

Time covers the work, without imports; memory is the largest resident set of the process, with imports. Routes whose
package is missing are left out, with a message.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from side_by_side import measure, print_table, run_here

HERE = Path(__file__).resolve().parent


def tables(path: Path) -> Callable[[], int]:
    """Count the rows of all tables."""
    from pyarrow import array

    from traceviz.api import open_trace

    import_module("traceviz.parsers.xplane.files")
    array([0])  # imports pandas, if it is installed

    def work() -> int:
        trace = open_trace(path)
        return sum(trace.arrow(name).num_rows for name in trace)

    return work


def tables_without_compiled(path: Path) -> Callable[[], int]:
    """Count the rows of all tables, without compiled code."""
    os.environ["TRACEVIZ_SCANNER"] = "protobuf"
    import_module("traceviz.parsers.xplane.decode.protobuf")
    return tables(path)


def scan(path: Path, scanner: str = "compiled") -> Callable[[], int]:
    """Count events and stats."""
    from mmap import ACCESS_READ, mmap

    from traceviz.parsers.xplane.decode.scan import read_space

    import_module("traceviz.parsers.xplane.decode.protobuf")

    def work() -> int:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            space = read_space(data, scanner)
        return sum(len(plane.events) + len(plane.stats) for plane in space.planes)

    return work


def protobuf(path: Path, *, keep: bool = False) -> Callable[[], int]:
    """Visit the fields of each event and each stat, and count them."""
    space_class = generated_class()
    rows: list[tuple[object, ...]] = []

    def work() -> int:
        space = space_class.FromString(path.read_bytes())
        visited = 0
        for plane in space.planes:
            names = {key: entry.name for key, entry in plane.event_metadata.items()}
            keys = {key: entry.name for key, entry in plane.stat_metadata.items()}
            for line in plane.lines:
                base = line.timestamp_ns * 1000
                for event in line.events:
                    row = (names.get(event.metadata_id), base + event.offset_ps, event.duration_ps)
                    visited += 1
                    if keep:
                        rows.append(row)
                    for stat in event.stats:
                        kind = stat.WhichOneof("value")
                        if kind is not None:
                            value = getattr(stat, kind)
                            pair = (keys.get(stat.metadata_id), keys.get(value) if kind == "ref_value" else value)
                            visited += 1
                            if keep:
                                rows.append(pair)
        return visited

    return work


def generated_class() -> Any:
    """Return the class of a whole file."""
    try:
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    except ImportError:
        import xplane_messages

        return xplane_messages.XSpace
    return xplane_pb2.XSpace


def jax(path: Path) -> Callable[[], int]:
    """Visit each event and each stat, and count them."""
    from jax.profiler import ProfileData

    def work() -> int:
        visited = 0
        for plane in ProfileData.from_file(str(path)).planes:
            for line in plane.lines:
                for event in line.events:
                    row = (event.name, event.start_ns, event.duration_ns)
                    visited += len(row) // 3 + sum(1 for _ in event.stats)
        return visited

    return work


def xprof(path: Path) -> Callable[[], int]:
    """Count the bytes of the page. It uses a copy, because xprof leaves files next to the capture."""
    from xprof.convert import raw_to_tool_data

    folder = Path(tempfile.mkdtemp())
    copy = shutil.copy(path, folder / path.name)

    def work() -> int:
        data, _ = raw_to_tool_data.xspace_to_tool_data(
            [str(copy)], "input_pipeline_analyzer", {"use_saved_result": False}
        )
        shutil.rmtree(folder)
        return len(data)

    return work


ROUTES: dict[str, Callable[[Path], Callable[[], int]]] = {
    "tables": tables,
    "tables (protobuf)": tables_without_compiled,
    "scan": scan,
    "scan (protobuf)": lambda path: scan(path, "protobuf"),
    "protobuf": protobuf,
    "protobuf rows": lambda path: protobuf(path, keep=True),
    "jax": jax,
    "xprof": xprof,
}
OURS = ("tables", "tables (protobuf)", "scan", "scan (protobuf)")


def main() -> None:
    """Run the benchmark, or one route in its own process."""
    options = parse_options()
    if options.route:
        run_here(ROUTES[options.route](options.capture))
        return
    folder = Path(tempfile.mkdtemp())
    try:
        capture = options.capture or recorded(folder, options) or made(folder, options.scale)
        print(f"{capture.name}: {capture.stat().st_size / 1e6:,.1f} MB; {options.runs} runs of each route")
        print_table(measure(commands(capture, options), options.runs))
    finally:
        shutil.rmtree(folder)


def parse_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capture", type=Path, help="capture to read instead of a generated one")
    parser.add_argument("--tensorflow", type=float, metavar="SECONDS", help="record a capture with TensorFlow")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor on the size of the generated capture (default 1)"
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each route (default 3)")
    parser.add_argument("--python", default=sys.executable, help="Python that has TensorFlow, JAX or xprof")
    parser.add_argument("--route", choices=list(ROUTES), help=argparse.SUPPRESS)
    return parser.parse_args()


def made(folder: Path, scale: float) -> Path:
    """Generate a capture."""
    import big_xplane

    path = folder / "made.xplane.pb"
    begin = time.perf_counter()
    events = big_xplane.make(path, scale)
    print(f"made {events:,} events in {time.perf_counter() - begin:.1f} s")
    return path


def recorded(folder: Path, options: argparse.Namespace) -> Path | None:
    """Record a capture with TensorFlow, if requested."""
    if options.tensorflow is None:
        return None
    command = [options.python, str(HERE / "xplane_program.py"), str(folder), str(options.tensorflow)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"no capture was recorded:\n{done.stderr[-2000:]}")
    return Path(done.stdout.splitlines()[-1])


def commands(capture: Path, options: argparse.Namespace) -> dict[str, list[str | Path]]:
    """Return the command of each route."""
    return {
        route: [sys.executable if route in OURS else options.python, __file__, "--route", route, "--capture", capture]
        for route in ROUTES
    }


if __name__ == "__main__":
    main()
