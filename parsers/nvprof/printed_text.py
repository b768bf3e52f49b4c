"""Printed output of nvprof, in CSV or in columns of text, split into its sections.

::

    ==4711== NVPROF is profiling process 4711, command: python train.py
    ...                                                     output of the program, at any place
    ==4711== Profiling result:                              title
    "Start","Duration",...,"Name","Correlation_ID"          header      or:    Start  Duration  Name
    s,ms,...,,                                              units           17.181ms  6.7400us  cuDeviceGet
    0.5,0.010677,...,"[CUDA memset]",304                    rows

Every header starts a section, which lasts until the next header. Other lines (log lines, output of the program,
footnotes) are left out.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import Literal

TIMES = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
"""Nanoseconds in a unit of time."""
SIZES = {"B": 1.0, "KB": 1024.0, "MB": 1024.0**2, "GB": 1024.0**3, "TB": 1024.0**4}
"""Bytes in a unit of memory: nvprof's kilobyte has 1024 bytes."""
COUNTS = {"": 1.0}
"""Numbers without a unit."""
UNITS = frozenset({*TIMES, *SIZES, *(f"{size}/s" for size in SIZES), "%", "W", "C", "MHz"})
"""Units that a row of units can hold."""

Kind = Literal["trace", "summary", "unified_memory"]
Severity = Literal["warning", "error"]

_LABELS: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("trace", frozenset({"Start", "Duration", "Name"})),
    ("summary", frozenset({"Time(%)", "Time", "Calls", "Name"})),
    ("unified_memory", frozenset({"Count", "Total Size", "Total Time"})),
)
"""Labels that every header of a kind has."""

_HEADER = re.compile(rb'^[ \t"]*(?:Start|Type|Time\(%\)|Device|Count)[" \t].*$', re.MULTILINE)
_TELLING = (b"NVPROF is profiling process", b"Profiling result", b"Duration", b"Time(%)", b"Total Size")
"""nvprof's output always has one of these: two log lines, and a label of each kind of header."""
_COLUMNS = re.compile(r"\s{2,}")
_CELL = re.compile(r'(?:^|(?<=,))(?:"(?P<quoted>(?:[^"]|"")*)"[^,]*|(?P<plain>[^,]*))(?:,|$)')
_TITLE = re.compile(rb"^(?:={2,}+(?P<pid>\d{1,10})={2,}+|={4,}+)\s++(?P<title>[^\n]*+)", re.MULTILINE)
_DEVICE = re.compile(rb'^Device "(?P<device>[^"\n]*)"\s*$', re.MULTILINE)
_START = re.compile(
    rb"^={2,}\d+={2,} NVPROF is profiling process (?P<process>\d{1,10}), command: (?P<command>[^\n]*+)",
    re.MULTILINE,
)
_WARNING = re.compile(rb"^={2,}+(?:\d{1,10}={2,}+)?\s++(?P<severity>Warning|Error): (?P<text>[^\n]*+)", re.MULTILINE)
_SEVERITIES: dict[bytes, Severity] = {b"Warning": "warning", b"Error": "error"}
_LONGEST_WARNING = 500
"""Maximum bytes of a warning."""
_MOST_WARNINGS = 20
ROW = {
    # Numbers, perhaps quoted; a row of a summary starts with its type.
    ("trace", True): r'^"?[0-9]',
    ("trace", False): r"^\s*[0-9][0-9.]*(?:s|ms|us|ns)\s",
}


@dataclass(frozen=True, slots=True)
class Process:
    """A process that nvprof reports to profile."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """One table that nvprof printed.

    Args:
        kind: Kind of its rows.
        title: The log line before it, for example ``API calls``.
        pid: Its process; ``None`` if the file does not state it.
        device: Device of a summary of unified memory, if a line before it names one.
        labels: Its header.
        units: For each column the unit of its numbers; empty if each number has its own.
        is_csv: True if it is CSV.
        body: The text after the header and the units.
    """

    kind: Kind
    title: str
    pid: int | None
    device: str | None
    labels: tuple[str, ...]
    units: tuple[str, ...]
    is_csv: bool
    body: bytes

    def unit(self, label: str) -> str:
        """Return the unit of the numbers of a column."""
        return self.units[self.labels.index(label)] if label in self.labels and self.units else ""

    def lines(self) -> list[str]:
        """Return the lines of the body as text."""
        return self.body.decode("utf-8", "replace").splitlines()


def sections(content: bytes) -> list[Section]:
    """Return the sections of nvprof's output, in their order."""
    headers = [
        (match, kind, labels)
        for match in _HEADER.finditer(content)
        if (kind := _kind(labels := _labels(match))) is not None
    ]
    stated = [(match.start(), int(match["pid"])) for match in _TITLE.finditer(content) if match["pid"]]
    result = []
    for index, (match, kind, labels) in enumerate(headers):
        stop = headers[index + 1][0].start() if index + 1 < len(headers) else len(content)
        above = content[headers[index - 1][0].end() if index else 0 : match.start()]
        titles, devices = list(_TITLE.finditer(above)), list(_DEVICE.finditer(above))
        pids_above = bisect_left(stated, (match.start(), 0))
        is_csv = b"," in match[0]
        text = content[match.end() : stop].lstrip(b"\r\n")
        first, _, below = text.partition(b"\n")
        units = csv_cells(first.decode("utf-8", "replace")) if is_csv else []
        has_units = len(units) == len(labels) and any(units) and set(units) <= UNITS | {""}
        section = Section(
            kind,
            _title(titles[-1]).decode("utf-8", "replace") if titles else "",
            stated[pids_above - 1][1] if pids_above else None,
            devices[-1]["device"].decode("utf-8", "replace") if devices else None,
            labels,
            tuple(units) if has_units else (),
            is_csv,
            below if has_units else text,
        )
        result.append(section)
    return result


def _title(match: re.Match[bytes]) -> bytes:
    return match["title"].rstrip().removesuffix(b":")


def warnings(content: bytes) -> list[tuple[Severity, str]]:
    """Return nvprof's warnings from its log lines, each once, in their order."""
    said = [
        (_SEVERITIES[match["severity"]], match["text"].strip()[:_LONGEST_WARNING].decode("utf-8", "replace"))
        for match in _WARNING.finditer(content)
    ]
    return list(dict.fromkeys(said))[:_MOST_WARNINGS]


def processes(content: bytes) -> list[Process]:
    """Return the processes that nvprof reports to profile, in their order."""
    return [
        Process(int(match["process"]), match["command"].rstrip().decode("utf-8", "replace"))
        for match in _START.finditer(content)
    ]


def looks_printed(head: bytes) -> bool:
    """Return whether ``head`` is the start of nvprof's output."""
    if b"\0" in head or not any(word in head for word in _TELLING):  # reject all other text at once
        return False
    if _START.search(head) or any(_title(match) == b"Profiling result" for match in _TITLE.finditer(head)):
        return True
    return any(_kind(_labels(match)) for match in _HEADER.finditer(head))


def _labels(match: re.Match[bytes]) -> tuple[str, ...]:
    """Return the labels of a header; the second of two equal labels gets a number, and is not used."""
    line = match[0].decode("utf-8", "replace").strip()
    labels = csv_cells(line) if "," in line else _COLUMNS.split(line)
    seen: Counter[str] = Counter()
    unique = []
    for label in labels:
        seen[label] += 1
        unique.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return tuple(unique)


def csv_cells(line: str) -> list[str]:
    """Return the cells of one line of CSV of any length, with any control characters in them."""
    line = line.strip("\r\n").replace("\r", " ")
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a cell of more than 131,072 characters
        return [
            match["quoted"].replace('""', '"') if match["quoted"] is not None else match["plain"]
            for match in _CELL.finditer(line)
        ]


def _kind(labels: tuple[str, ...]) -> Kind | None:
    return next((kind for kind, needed in _LABELS if needed <= set(labels)), None)
