"""Summaries that nvprof prints, as rows of table ``totals``: one row per name, not per event.

Each number can have its own unit. Of the rows of one type, only the first states the type::

    ==9== Profiling result:
                Type  Time(%)      Time     Calls       Avg       Min       Max  Name
     GPU activities:   99.28%  1.4175ms         1  1.4175ms  1.4175ms  1.4175ms  [CUDA memcpy HtoD]
                        0.41%  5.9200us         1  5.9200us  5.9200us  5.9200us  reduce(float*, int)
          API calls:   97.00%  180.20ms         2  90.100ms  4.4000us  180.20ms  cudaMalloc

Before CUDA 9 there was no type, and the line before the header stated the kind of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from traceviz.parsers.nvprof.demangle import Demangler
from traceviz.parsers.nvprof.printed_text import COUNTS, SIZES, TIMES, Section, csv_cells
from traceviz.parsers.nvprof.quantities import whole

GPU, API = "GPU activities", "API calls"
_TYPED = re.compile(r"^\s*(?P<type>[A-Za-z][^:%]*):\s+(?P<numbers>[0-9.]+%.*)$")
_CELLS = re.compile(r"\s{2,}")
_CPU_FAULTS = re.compile(r"^Total CPU Page faults: (?P<count>\d{1,18})")


@dataclass(frozen=True, slots=True)
class Totals:
    """One row of a summary.

    Args:
        kind: Value of ``totals.kind``.
        name: Name as printed, demangled.
        calls: Number of calls.
        times: Total, mean, minimum and maximum in nanoseconds.
        size: Total bytes.
        device: Device as printed.
    """

    kind: str
    name: str
    calls: int | None
    times: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)
    size: int | None = None
    device: str | None = None


def totals(section: Section, demangler: Demangler) -> list[Totals]:
    """Return the rows of a summary, in their order."""
    if section.kind != "unified_memory":
        return list(_summary(section, demangler))
    cpu_faults = [match for line in section.lines() if (match := _CPU_FAULTS.match(line))]
    return [
        *_migrations(section),
        *(Totals("unified_memory", "CPU page faults", int(match["count"])) for match in cpu_faults),
    ]


def _summary(section: Section, demangler: Demangler) -> Iterator[Totals]:
    kind = API if "API" in section.title else GPU
    rows = list(_rows(section))
    names = demangler.demangled(cells.get("Name", "") for cells in rows)
    for cells, name in zip(rows, names, strict=True):
        stated = cells.get("Type")
        kind = stated or kind
        times = [_number(cells.get(label, ""), section.unit(label)) for label in ("Time", "Avg", "Min", "Max")]
        calls = _number(cells.get("Calls", ""), "", COUNTS)
        if calls is not None and times[0] is not None:
            yield Totals(_kind(kind, name), name, calls, (times[0], times[1], times[2], times[3]))


def _kind(kind: str, name: str) -> str:
    if kind == API:
        return "runtime" if name.startswith("cuda") else "driver" if name.startswith("cu") else "other"
    if kind != GPU:
        return "other"
    return "copy" if name.startswith("[CUDA memcpy") else "memset" if name.startswith("[CUDA memset") else "kernel"


def _migrations(section: Section) -> Iterator[Totals]:
    """Yield migrations by direction. The printed size of page faults is their number."""
    for cells in _rows(section):
        name = cells.get("Name") or cells.get("", "")
        if not name:
            continue
        calls = _number(cells.get("Count", ""), "", COUNTS)
        size = _number(cells["Total Size"], section.unit("Total Size"), SIZES)
        if calls is None and "fault" in name:
            calls, size = size, None
        time = _number(cells["Total Time"], section.unit("Total Time"))
        device = cells.get("Device") or section.device
        yield Totals("unified_memory", name, calls, (time, None, None, None), size, device)


def _rows(section: Section) -> Iterator[dict[str, str]]:
    """Yield the cells of each row by label; other lines are left out."""
    for line in section.lines():
        cells = _cells(line, section)
        if len(cells) == len(section.labels):
            yield dict(zip(section.labels, ("" if cell == "-" else cell for cell in cells), strict=True))


def _cells(line: str, section: Section) -> list[str]:
    """Return the cells of a line. In text, they are two spaces apart; a type, on first rows only, ends with a colon."""
    if section.is_csv:
        return [] if line.startswith("=") else csv_cells(line)
    count = len(section.labels)
    if section.labels[0] != "Type":
        return _CELLS.split(line.strip(), count - 1)
    match = _TYPED.match(line)
    kind, numbers = (match["type"].strip(), match["numbers"]) if match else ("", line)
    return [kind, *_CELLS.split(numbers.strip(), count - 2)]


def _number(text: str, unit: str, factors: dict[str, float] = TIMES) -> int | None:
    value: Any = whole(pa.array([text], pa.string()), factors, unit)[0].as_py()
    return None if value is None else int(value)
