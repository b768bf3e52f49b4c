"""Archives of thousands of traces: `list`, `report` and a query that joins three tables, and how their time grows.

    python benchmarks/archive_copies.py                      100, 1,000 and 10,000 traces
    python benchmarks/archive_copies.py --counts 100 1000 --runs 3 --folder DIR

To add 10,000 traces takes long, and what is asked here does not depend on how they came in: 100 small traces of
``archive_traces.py`` are added; all others are copies of them that the functions of the archive's own storage write
under other ids. The files of tables and reports of a copy are hard links. Its rows of the catalogue and its manifest
are its own, with its id and a recording time of its own. The catalogue is written in segments and merged, and
tables are packed, as ``add`` does.

Every task runs in its own process. Libraries are loaded before the clock starts. The exponent is the slope of log time
over log count: 1 is linear.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive import QUERIES, exponent
from archive_traces import make
from side_by_side import measure, run_here

if TYPE_CHECKING:
    import pyarrow as pa

    from traceviz.archive.storage.store import Store

ADDED = 100
"""Traces that are added; the rest are copies."""
TASKS = ("list", "list, 20 rows", "report", *QUERIES)
_HOUR_NS = 3600 * 10**9


def main() -> None:
    """Make the archives and measure, or run one task (``--task``)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[100, 1000, 10_000], help="numbers of traces")
    parser.add_argument("--runs", type=int, default=3, help="how often every task is done")
    parser.add_argument("--folder", type=Path, help="where to keep traces and archives; by default nowhere")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        run_here(_task(*arguments.task))
        return
    with tempfile.TemporaryDirectory() as temporary:
        compare(arguments.folder or Path(temporary), sorted(arguments.counts), arguments.runs)


def compare(folder: Path, counts: list[int], runs: int) -> None:
    """Measure all tasks on archives of all counts, and print a line for each task."""
    times: dict[str, dict[int, float]] = {task: {} for task in TASKS}
    for count in counts:
        begin = time.perf_counter()
        archive = folder / f"archive-{count}"
        if not archive.exists():
            fill(folder, archive, count)
        print(f"{count:,} traces: made in {time.perf_counter() - begin:.1f} s", file=sys.stderr)
        commands = {task: (sys.executable, __file__, "--task", task, str(archive)) for task in TASKS}
        for task, measured in measure(commands, runs).items():
            times[task][count] = statistics.median(one.seconds for one in measured)
    print(f"{os.cpu_count()} cores; seconds, medians of {runs}\n")
    print(f"{'task':18} " + " ".join(f"{count:>9,}" for count in counts) + f" {'exponent':>9}")
    for task, seconds in times.items():
        print(f"{task:18} " + " ".join(f"{seconds[count]:9.3f}" for count in counts) + f" {exponent(seconds):>9}")


def fill(folder: Path, archive: Path, count: int) -> None:
    """Make an archive of ``count`` traces: at most :data:`ADDED` are added, the rest are copies."""
    from traceviz.archive.ingest.add import add
    from traceviz.archive.ingest.ingest import IngestOptions
    from traceviz.archive.runners.local import LocalRunner
    from traceviz.archive.storage.store import Store

    sources = folder / f"traces-{min(count, ADDED)}"
    make(sources, min(count, ADDED))
    store = Store.at(archive)
    add(store, [str(sources)], IngestOptions(), LocalRunner())
    copy(store, count)


def copy(store: Store, count: int) -> None:
    """Fill the archive up to ``count`` traces with copies of those that it has."""
    import pyarrow as pa

    from traceviz.archive.catalogue import packs, segments
    from traceviz.archive.ingest.add import FLUSH_TRACES
    from traceviz.archive.storage import layout

    originals = [_Original.of(store, *trace) for trace in layout.traces_in(store)]
    waiting: list[pa.Table] = []
    for number in range(len(originals), count):
        waiting.append(originals[number % len(originals)].copied(store, number))
        if len(waiting) == FLUSH_TRACES or number == count - 1:
            segments.append(store, pa.concat_tables(waiting))
            waiting.clear()
    segments.merge(store)
    packs.pack(store, segments.read(store))


@dataclass(frozen=True, slots=True)
class _Original:
    """A trace of the archive: its format and id, its files except its own two, its rows and its manifest."""

    format: str
    trace_id: str
    paths: tuple[Path, ...]
    rows: pa.Table
    manifest: dict[str, Any]

    @classmethod
    def of(cls, store: Store, format_name: str, trace_id: str) -> _Original:
        from traceviz.archive.catalogue.segments import stored_rows
        from traceviz.archive.storage.layout import ROWS, trace_parts
        from traceviz.archive.storage.store import LAST

        folder = Path(store.url_of(*trace_parts(format_name, trace_id)))
        rows = stored_rows(store, format_name, trace_id)
        if rows is None:
            sys.exit(f"{folder} is not whole.")
        paths = tuple(path for path in folder.iterdir() if path.name not in {ROWS, LAST})
        return cls(format_name, trace_id, paths, rows, json.loads((folder / LAST).read_text(encoding="utf-8")))

    def copied(self, store: Store, number: int) -> pa.Table:
        """Write the trace once more under another id; return its rows of the catalogue."""
        import pyarrow.parquet as pq

        from traceviz.archive.storage.layout import ROWS, trace_parts
        from traceviz.archive.storage.store import LAST

        sha256 = hashlib.sha256(f"{self.trace_id} {number}".encode()).hexdigest()
        own = {"trace_id": sha256[: len(self.trace_id)], "source_sha256": sha256}
        rows = self._rows(own, number)
        with store.new_folder(*trace_parts(self.format, own["trace_id"])) as folder:
            for path in self.paths:
                os.link(path, folder / path.name)
            pq.write_table(rows, folder / ROWS, compression="zstd")
            content = (folder / ROWS).read_bytes()
            sums = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            files = {**self.manifest["files"], ROWS: sums}
            (folder / LAST).write_text(json.dumps({**self.manifest, **own, "files": files}) + "\n", encoding="utf-8")
        return rows

    def _rows(self, own: dict[str, str], number: int) -> pa.Table:
        """Return the rows with the id of the copy, and other hours of recording."""
        import pyarrow as pa
        import pyarrow.compute as pc

        hours = pc.add(pc.coalesce(self.rows["recorded_ns"], self.rows["added_ns"]), number * _HOUR_NS)
        columns = {**{name: pa.array([value] * len(self.rows)) for name, value in own.items()}, "recorded_ns": hours}
        return pa.table(
            [columns.get(name, self.rows[name]) for name in self.rows.column_names], schema=self.rows.schema
        )


def _task(name: str, archive: str) -> Callable[[], int]:
    """Return the timed work, which returns a count."""
    from traceviz.archive.catalogue import listing, segments
    from traceviz.archive.query.engine import Engine
    from traceviz.archive.request import ReportRequest, report_for
    from traceviz.archive.storage.store import Store
    from traceviz.render.options import RenderOptions
    from traceviz.render.terminal.page import TerminalRenderer

    store, options = Store.at(archive), RenderOptions()

    def listed() -> int:
        limit = 20 if "20" in name else None
        return len(TerminalRenderer().render(listing.listing(store, segments.read_kept(store), limit=limit), options))

    def reported() -> int:
        return len(TerminalRenderer().render(report_for(ReportRequest(store)), options))

    def queried() -> int:
        with Engine(store) as engine:
            return engine.sql(QUERIES[name]).num_rows

    return listed if name.startswith("list") else reported if name == "report" else queried


if __name__ == "__main__":
    main()
