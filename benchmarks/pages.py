"""Pages with a timeline of 10^4 to 10^7 events: what making, sending, opening and moving them takes.

    python benchmarks/pages.py                      the table: about ten minutes, 2 GB of disk, 4 GB of memory
    python benchmarks/pages.py --most 1e5           only pages of at most so many events: a minute
    python benchmarks/pages.py --markdown           and the table goes into docs/pages.md
    python benchmarks/pages.py --viztracer FOLDER   beside pages of viztracer, which `pip install --target` put there

The traces are databases of nsys, made by ``big_nsys.py``: two threads that call CUDA, two streams of kernels. viztracer
gets the same events, with the same names and times, as Chrome's JSON, and makes its page (``viztracer --combine``);
where it is not installed, it is left out. Its page loads a script from the network, which ``npm`` fetches here once.
Of 10^7 events no page of it is made: of 10^6 it has 129 MB already.

*Make* is the whole command, from its start to its end, with the largest resident set of its process. *Open* is the time
from the navigation to the first full drawing of the timeline in headless Chromium without a graphics card. *Pan* and
*zoom* are the time between frames while that is done for two seconds: the median, and what 95 % of the frames stay
within. A screen shows 60 frames a second, so 16.7 ms is the least. *Memory* is what the process of the page has
resident at most. Beyond the budget (``--timeline-events``) a page of traceviz holds levels of detail, not events.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import made_traces
from nsys_answers import traceviz
from rich.console import Console
from rich.table import Table
from side_by_side import Usage, run_alone
from whole_tables import check_place, fill, machine

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "pages.md"
BUILD = HERE.parent / "build"
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
PER_SCALE = 4_500_000
"""Events of ``big_nsys`` at scale 1."""
MOST_OF_VIZTRACER = 1_000_000
"""Most events for viztracer, which holds them all as objects of Python, and of JavaScript."""
WEB_COMPONENTS = "webcomponents.js@0.7.24"
"""Script that its page loads from cdnjs.cloudflare.com."""
COLUMNS = ("events", "page of", "make", "peak", "page", "without timeline", "open", "pan", "zoom", "memory")
_PART = "pages"
_TIMELINE = re.compile(r'<section [^>]*id="timeline".*?</section>', re.DOTALL)
_ASSETS = HERE.parent / "traceviz" / "render" / "html" / "assets"
_EVENTS = """
SELECT 'python3' AS process, globalTid & 0xFFFFFF AS track, value AS name, start, end
FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId
UNION ALL
SELECT 'GPU 0', streamId, value, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName
ORDER BY start
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A page, and the cost of making it."""

    usage: Usage
    page: Path

    @property
    def small_bytes(self) -> int | None:
        """Bytes of the page without its timeline, scripts and style included; ``None`` for a page of another tool."""
        text, sections = _TIMELINE.subn("", self.page.read_text(encoding="utf-8", errors="replace"))
        assets = sum(file.stat().st_size for file in _ASSETS.glob("timeline*"))
        return len(text.encode()) - assets if sections else None


def main() -> None:
    """Make missing traces, measure, print the table."""
    options = parse_options()
    if options.markdown:
        check_place(options.markdown, _PART)
    folder = (options.data or Path(tempfile.mkdtemp(prefix="pages."))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TRACEVIZ_CACHE"] = "0"
    try:
        rows = [row for size in SIZES if size <= options.most for row in measured(size, folder, options)]
    finally:
        if options.data is None:
            shutil.rmtree(folder)
    show(rows)
    if options.markdown:
        fill(options.markdown, _PART, f"{machine()}\n\n{as_markdown(rows)}")


def parse_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=1e7, help="events of the largest page (default 1e7)")
    parser.add_argument("--viztracer", type=Path, default=BUILD / "viztracer", metavar="FOLDER")
    parser.add_argument("--data", type=Path, help="folder to keep the traces and pages in, for the next time")
    parser.add_argument("--markdown", type=Path, nargs="?", const=DOCS, help="page that gets the table (docs/pages.md)")
    return parser.parse_args()


# Making ---------------------------------------------------------------------------------------------------------------


def measured(size: int, folder: Path, options: argparse.Namespace) -> list[tuple[str, ...]]:
    """Return the rows of one number of events."""
    print(f"{size:,} events ...", file=sys.stderr)
    trace = made_traces.nsys_database(folder, size / PER_SCALE)
    rows = [row_of(size, "traceviz", our_page(trace), opened("traceviz", trace.with_suffix(".html")))]
    if (options.viztracer / "viztracer").is_dir() and size <= MOST_OF_VIZTRACER:
        # Writing the JSON that viztracer reads is not measured.
        events, page = trace.with_suffix(".json"), trace.with_suffix(".viztracer.html")
        write_chrome_json(trace, events)
        command = (sys.executable, "-m", "viztracer", "--combine", events, "-o", page)
        usage = checked(command, {"PYTHONPATH": str(options.viztracer)})
        events.unlink()
        made = Made(usage, page)
        rows.append(row_of(size, "viztracer", made, opened("viztracer", made.page, "--scripts", scripts())))
    return rows


def our_page(trace: Path) -> Made:
    """Make the whole report with its timeline."""
    page = trace.with_suffix(".html")
    page.unlink(missing_ok=True)
    return Made(checked((traceviz(), "report", trace, "--format", "html", "-o", page)), page)


def write_chrome_json(trace: Path, place: Path) -> None:
    """Write all calls and kernels of the database as complete events, with only name, track and times."""
    with sqlite3.connect(trace) as database, place.open("w", encoding="utf-8") as file:
        file.write('{"traceEvents":[')
        pids: dict[str, int] = {}
        for number, (process, track, name, start, end) in enumerate(database.execute(_EVENTS)):
            pid = pids.setdefault(process, len(pids))
            head = f'{{"ph":"X","pid":{pid},"tid":{track},"name":{json.dumps(name)},'
            file.write(f'{"," if number else ""}{head}"ts":{start / 1000},"dur":{(end - start) / 1000}}}')
        for process, pid in pids.items():
            file.write(f',{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":"{process}"}}}}')
        file.write("]}")
    database.close()


def scripts() -> Path:
    """Return the folder with the script that viztracer's page loads from the network."""
    folder = BUILD / "viztracer-scripts"
    script = folder / "webcomponents.min.js"
    if not script.exists() and shutil.which("npm"):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", WEB_COMPONENTS], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        packed = next(folder.glob("*.tgz"))
        shutil.unpack_archive(packed, folder, filter="data")
        shutil.copy(folder / "package" / script.name, script)
    return folder


def checked(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> Usage:
    """Run a command that must succeed."""
    usage = run_alone(command, environment=environment)
    if usage.code:
        sys.exit(f"{' '.join(map(str, command))} ended with {usage.code}:\n{usage.errors[-2000:]}")
    return usage


def opened(kind: str, page: Path, *words: str | Path) -> dict[str, Any]:
    """Return the figures of ``opened_page.py`` for a page."""
    usage = checked((sys.executable, HERE / "opened_page.py", kind, page, *words))
    found: dict[str, Any] = json.loads(usage.output.splitlines()[-1])
    return found


# The table ------------------------------------------------------------------------------------------------------------


def row_of(size: int, tool: str, made: Made, found: dict[str, Any]) -> tuple[str, ...]:
    """Return one line of the table."""
    small = made.small_bytes
    return (
        f"{size:,}",
        tool,
        f"{made.usage.seconds:.2f} s",
        megabytes(made.usage.peak_bytes),
        megabytes(made.page.stat().st_size),
        "" if small is None else f"{small / 1e3:,.0f} kB",
        f"{found['opened_ms'] / 1000:.2f} s" if "opened_ms" in found else "not in 60 s",
        frame_times(found.get("pan")),
        frame_times(found.get("zoom")),
        megabytes(found["peak_bytes"]) if found["peak_bytes"] else "",
    )


def megabytes(size: float) -> str:
    """Return bytes as a text."""
    return f"{size / 1e6:,.1f} MB" if size < 1e8 else f"{size / 1e6:,.0f} MB"


def frame_times(found: dict[str, float] | None) -> str:
    """Return milliseconds per frame (median and 95th percentile), and frames per second."""
    if not found:
        return ""
    return f"{found['median_ms']:.1f}, {found['p95_ms']:.1f} ms ({1000 / found['median_ms']:.0f} /s)"


def show(rows: Sequence[tuple[str, ...]]) -> None:
    """Print the table on the terminal."""
    table = Table(*COLUMNS[:2], box=None)
    for name in COLUMNS[2:]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=150).print(table)


def as_markdown(rows: Sequence[tuple[str, ...]]) -> str:
    """Return the table as Markdown."""
    rule = ["---:", "---", *["---:"] * (len(COLUMNS) - 2)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (COLUMNS, rule, *rows))


if __name__ == "__main__":
    main()
