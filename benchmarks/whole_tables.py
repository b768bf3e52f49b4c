"""The table of ``whole.py``: as text, and as Markdown in a page."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from side_by_side import Usage

COLUMNS = ("job", "route", "runs", "wall", "min", "max", "work", "CPU", "peak", "wall ×", "CPU ×", "peak ×")
_WORDS = 2
"""The first columns are text, the others numbers."""
_PACKAGES = ("polars", "pyarrow", "pandas")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, a text for each of :data:`COLUMNS`."""

    cells: tuple[str, ...]

    @classmethod
    def of(cls, job: str, route: str, usages: Sequence[Usage], base: Sequence[Usage]) -> Row:
        """Return the medians of a route, and as multiples of those of the ``base`` route."""
        walls = [usage.seconds for usage in usages]
        works = [usage.work_seconds for usage in usages if usage.work_seconds is not None]
        ours, theirs = _medians(usages), _medians(base)
        numbers = (
            *(f"{seconds:.2f} s" for seconds in (ours[0], min(walls), max(walls))),
            f"{statistics.median(works):.2f} s" if works else "",
            f"{ours[1]:.2f} s",
            f"{ours[2] / 1e6:,.0f} MB",
        )
        ratios = (f"{mine / other:.2f}" for mine, other in zip(ours, theirs, strict=True))
        return cls((job, route, str(len(usages)), *numbers, *ratios))

    @classmethod
    def said(cls, job: str, route: str, said: Mapping[str, str]) -> Row:
        """Return a line with other texts than measurements in these columns."""
        cells = dict.fromkeys(COLUMNS, "") | {"job": job, "route": route, **said}
        return cls(tuple(cells.values()))


def _medians(usages: Sequence[Usage]) -> tuple[float, float, float]:
    """Return median wall and CPU time, and the largest peak."""
    seconds = statistics.median(usage.seconds for usage in usages)
    cpu_seconds = statistics.median(usage.cpu_seconds for usage in usages)
    return seconds, cpu_seconds, float(max(usage.peak_bytes for usage in usages))


def text(rows: Sequence[Row]) -> str:
    """Return the table for a terminal; a job is named once."""
    shown = [COLUMNS, *_named_once(rows)]
    widths = [max(len(line[column]) for line in shown) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < _WORDS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in shown
    )


def markdown(rows: Sequence[Row]) -> str:
    """Return the table as Markdown."""
    rule = ["---"] * _WORDS + ["---:"] * (len(COLUMNS) - _WORDS)
    return "\n".join(f"| {' | '.join(line)} |" for line in (COLUMNS, rule, *_named_once(rows)))


def _named_once(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    lines, before = [], ""
    for row in rows:
        job, *rest = row.cells
        lines.append((job if job != before else "", *rest))
        before = job
    return lines


def machine() -> str:
    """Return the machine and the versions of this measurement, in one sentence."""
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{package} {importlib.metadata.version(package)}" for package in _PACKAGES]
    if nsys := shutil.which("nsys"):
        said = subprocess.run([nsys, "--version"], capture_output=True, text=True, check=False).stdout
        versions += [f"nsys {found[1]}" for found in [re.search(r"(\d{4}(?:\.\d+)+)", said)] if found]
    return f"{os.cpu_count()} cores ({processor()}); {', '.join(versions)}."


def processor() -> str:
    """Return the name of the processor."""
    try:
        facts = Path("/proc/cpuinfo").read_text()
    except OSError:
        facts = ""
    named = re.search(r"^model name\s*:\s*(.+)$", facts, re.MULTILINE)
    return named[1] if named else platform.machine()


def check_place(page: Path, part: str) -> None:
    """Exit unless a page has a place for the table: before the work, and not after it."""
    if not page.is_file() or not _place(part).search(page.read_text(encoding="utf-8")):
        sys.exit(f"{page} has no place for the table: <!-- {part} --> and <!-- /{part} -->")


def _place(part: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {part} -->\n).*?(<!-- /{part} -->)", re.DOTALL)


def fill(page: Path, part: str, content: str) -> None:
    """Put a table between the markers ``<!-- part -->`` and ``<!-- /part -->`` of a page."""
    changed = _place(part).sub(lambda found: f"{found[1]}{content}\n{found[2]}", page.read_text(encoding="utf-8"))
    page.write_text(changed, encoding="utf-8")
    print(f"{page.name} has the table", file=sys.stderr)
