"""Peak memory of reading and of a whole report, against the columns that are read, for a trace of every format.

    python benchmarks/peak_memory.py                     # a tenth of the largest traces: a few minutes
    python benchmarks/peak_memory.py --scale 1           # 4.5 M rows of nsys, 5 M events of XPlane and more: 4 GB
    python benchmarks/peak_memory.py --trace FILE...     # traces of your own

``columns`` are all tables in memory, as ``traceviz.open`` gives them. ``read`` is the peak of a process that does only
that, ``report`` that of ``traceviz report``; both without what importing the libraries takes. Multiples are of
``columns``. What is needed only in passing (text that is being decoded, sorting) is what makes them more than one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import big_nsys
import big_xplane
import kineto_read

READ = """
import sys, traceviz
tables = traceviz.open(sys.argv[1])
import json
rows = sum(tables.rows(name) for name in tables)
print(json.dumps([rows, sum(tables.arrow(name).nbytes for name in tables)]))
"""
BASE = """
import traceviz, traceviz.trace.tables, traceviz.analyses.run
import traceviz.parsers.kineto.tables, traceviz.parsers.xplane.files
"""
TINY = b'{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "name": "a"},\n'


def peak(*command: str | Path) -> tuple[int, str]:
    """Return the most memory that a process took, in bytes, and its output."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([sys.executable, *map(str, command)], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        if process.returncode is None:
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}")
        out.seek(0)
        return usage.ru_maxrss * 1024, out.read().decode()


def traces(folder: Path, scale: float) -> Iterator[tuple[str, Path]]:
    """Yield a large trace of every format, one at a time."""
    database = folder / "a.sqlite"
    big_nsys.make(database, scale)
    yield "nsys SQLite", database
    tables = folder / "tables"
    peak("-m", "traceviz", "convert", database, "-o", tables)
    database.unlink()
    yield "Parquet (traceviz folder)", tables
    capture = folder / "a.xplane.pb"
    big_xplane.make(capture, scale)
    yield "XPlane", capture
    capture.unlink()
    yield "Kineto", kineto_read.made(folder, scale)
    tiny = folder / "tiny.json"
    with tiny.open("wb") as file:
        file.write(b'{"schemaVersion": 1, "traceEvents": [')
        for _ in range(round(60 * scale)):
            file.write(TINY * 100_000)
        file.write(b"{}]}")
    yield "Kineto, tiny events", tiny
    printed = folder / "a.csv"
    with printed.open("w", encoding="utf-8") as file:
        file.write(_NVPROF_HEAD)
        for row in range(round(2_000_000 * scale)):
            file.write(f"{row * 0.01:.6f},5.120000,32,1,1,256,1,1,16,0.0,0.0,,,,,Tesla V100 (0),1,7,kernel{row % 50}\n")
    yield "nvprof CSV", printed


_NVPROF_HEAD = """==1== NVPROF is profiling process 1, command: ./a
==1== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem",\
"Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Name"
ms,us,,,,,,,,KB,B,MB,GB/s,,,,,,
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="size of the generated traces (0.1)")
    parser.add_argument("--trace", type=Path, nargs="+", help="traces to read instead of generated ones")
    options = parser.parse_args()
    base, _ = peak("-c", BASE)
    print(f"libraries alone: {base / 1e6:,.0f} MB")
    titles = ("rows", "columns MB", "read MB", "times", "B/row", "report MB", "times")
    print(f"{'format':<26}{''.join(f'{title:>12}' for title in titles)}")
    with tempfile.TemporaryDirectory() as folder:
        named = ((path.name, path) for path in options.trace) if options.trace else traces(Path(folder), options.scale)
        for name, path in named:
            taken, said = peak("-c", READ, path)
            rows, columns = json.loads(said)
            reported, _ = peak("-m", "traceviz", "report", path)
            read, whole = taken - base, reported - base
            figures = (
                *(f"{rows:,}", f"{columns / 1e6:,.0f}", f"{read / 1e6:,.0f}", f"{read / columns:.1f}"),
                *(f"{read / rows:,.0f}", f"{whole / 1e6:,.0f}", f"{whole / columns:.1f}"),
            )
            print(f"{name:<26}{''.join(f'{figure:>12}' for figure in figures)}", flush=True)


if __name__ == "__main__":
    main()
