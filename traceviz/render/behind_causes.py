"""The tables behind what takes the time: which sections hold them, cause by cause and finding by finding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from traceviz.render.rows import blocks_for_people, by_time_at_stake, is_share, number_of
from traceviz.report import Finding, Grid, Report, Row, Section, Severity

OTHER_THREADS = "host_time:Other threads"
OUTSIDE = "whole_run:1"
"""Where the time outside of steps went, in the order of time."""
COMPUTING = ("cpu_steps", "kernels", "operators", "framework_ops", "host_time", "totals", "totals:1")
ELSEWHERE = ("host_time", "host_waits", "cpu_steps", "kernels", "operators", "framework_ops", "cuda_api", "os_calls")
"""Where to look for any other cause, and when nothing of what is behind it was recorded."""
_INPUT = ("input_pipeline", "host_time", "input_pipeline:1", "os_calls", "host_waits")
_LAUNCHES = ("launch", "kernels", "cuda_api")
_COPIES = ("copies", "cuda_api", "host_waits")
_API = ("cuda_api", "host_waits", "memory")
_WAITS = ("host_waits", "cuda_api", "os_calls")
_HOST = ("host_time", "host_limits", "host_waits", "cpu_steps")
_OF_THREADS = ("host_time", OTHER_THREADS, "host_limits", "host_waits")
_OS = ("os_calls", "host_time", "host_waits")
_COMPILATION = ("compilation", "host_time", "host_waits")
_RUN = (OUTSIDE, "host_time", "host_waits")
_RANKS = ("ranks", "communication", "host_collectives", "host_time")
_HOST_COLLECTIVES = ("host_collectives", "ranks", "host_time")
_COMMUNICATION = ("communication", "communication:1", "ranks")

BY_CAUSE: dict[str, tuple[str, ...]] = {
    "healthy": COMPUTING,
    "input": _INPUT,
    "possible_input": ("host_time", "host_waits", "os_calls", "input_pipeline"),
    "parameter_transfer": _COPIES,
    "communication": _COMMUNICATION,
    "host_collective": _HOST_COLLECTIVES,
    "copy_d2h": _COPIES,
    "copy_h2d": _COPIES,
    "other_device": _COPIES,
    "blocking_copy": ("host_waits", "copies", "cuda_api"),
    "synchronisation": _WAITS,
    "device_wait": ("host_waits", "framework_ops", "operators"),
    "allocation": _API,
    "stream": _API,
    "first_launch": ("host_waits", "cuda_api"),
    "kernel_launch": _LAUNCHES,
    "launch_queue": _LAUNCHES,
    "compilation": _COMPILATION,
    "os_call": _OS,
    "profiler": ("host_waits", "cpu_steps"),
    "waiting": _OF_THREADS,
    "sleep": _OF_THREADS,
    "lock": _OF_THREADS,
    "gil": _OF_THREADS,
    "host": ("host_time", "host_waits", "operators"),
    "unexplained": ("host_time", "host_waits", "idle_gaps"),
    "devices_in_turn": ("device_use", "idle_gaps"),
    **dict.fromkeys(("imports", "preparation", "validation", "between", "after", "shutdown"), _RUN),
}
"""Sections whose tables are behind a cause, the most telling first.

``name`` is the first table of a section, ``name:1`` the second, ``name:Other`` the first whose title begins so.
"""
BY_CODE: dict[str, tuple[str, ...]] = {
    "TV1": _INPUT,
    "TV2": ("host_waits", "host_time", "cuda_api"),
    "TV201": ("host_waits", "idle_gaps", "device_use"),
    "TV202": _LAUNCHES,
    "TV203": _WAITS,
    "TV204": ("gpu_efficiency:1", "kernels"),
    "TV206": ("host_waits", "copies", "cuda_api"),
    "TV209": _OS,
    "TV210": ("host_waits", "cuda_api"),
    "TV211": ("host_waits", "compilation", "host_time"),
    "TV3": _COPIES,
    "TV301": _API,
    "TV304": _API,
    "TV310": ("kernels",),
    "TV4": ("kernels", "operators", "framework_ops"),
    "TV401": _COMPILATION,
    "TV402": ("memory", "memory:1"),
    "TV403": ("memory", "memory:1"),
    "TV404": ("input_pipeline", "device_programs"),
    "TV405": ("precision", "kernels"),
    "TV406": ("launch_contention", "launch", "operators"),
    "TV407": ("framework_ops", "launch", "operators"),
    "TV408": ("devices", "device_use"),
    "TV409": ("gpu_efficiency:1", "kernels"),
    "TV410": ("device_programs", "copies"),
    "TV411": ("devices", *COMPUTING),
    "TV5": _RANKS,
    "TV504": _COMMUNICATION,
    "TV505": _COPIES,
    "TV506": _HOST_COLLECTIVES,
    "TV6": _HOST,
    "TV601": ("host_time", "host", "cpu_steps"),
    "TV603": ("host", "host_time", "cpu_steps"),
    "TV606": COMPUTING,
    "TV607": ("cpu_steps", *_HOST),
    "TV608": ("lanes", "lanes:1"),
    "TV610": ("host_time", "os_calls", "host_limits"),
    "TV611": ("host_time", "operators", "host_limits"),
    "TV612": _OF_THREADS,
    "TV613": _OF_THREADS,
    "TV616": ("operators", "host_time", "host_limits"),
    "TV617": ("cpu_steps", "host_time", "operators"),
    "TV621": COMPUTING,
    "TV622": ("host_time", "host_limits"),
    "TV7": _RUN,
    "TV9": ELSEWHERE,
}
"""The same for findings, by code, else by how it begins."""

_OF_THE_RUN = "TV7"
_SLOW_WORKERS = "TV109"
"""The finding that other processes prepare the input: what they do is behind it."""
_AS_LARGE = 0.9
"""A finding with this part of the time of the first is as large: it may be about the same time."""
_WORTH_A_TABLE = 0.05
"""Causes of idle time of which none has this share are not worth a table."""
_TURN = {"input": 0, "lock": 2}
_TITLE_END = re.compile(r"[:,] | \(")
"""Where the title of a table begins to explain itself."""


def tables_behind(report: Report, first: Finding | None) -> tuple[Section, ...]:
    """The tables behind what takes the time, the most telling first, each in a section of its own.

    Args:
        report: The report.
        first: The finding that is shown first, if any is.
    """
    places = list(_places(report.verdict.cause, first))
    serious = [finding for finding in by_time_at_stake(report.findings) if finding.severity is not Severity.INFO]
    if serious and serious[0].code.startswith(_OF_THE_RUN):
        places = [OUTSIDE, *places]
    if any(finding.code == _SLOW_WORKERS for finding in report.findings):
        places = [OTHER_THREADS if place == "host_time" else place for place in places]
    as_large = next((f for f in serious if first and f is not first and f.cost_ns >= _AS_LARGE * first.cost_ns), None)
    if as_large and not as_large.code.startswith(_OF_THE_RUN):
        places[1:1] = _by_code(as_large.code)[:1]
    return _tables(report, places) or _tables(report, ELSEWHERE)


def _places(cause: str, first: Finding | None) -> tuple[str, ...]:
    """Where the tables are behind the cause that the verdict names, else behind the first finding."""
    if cause in BY_CAUSE:
        return BY_CAUSE[cause]
    if first and first.severity is not Severity.INFO:
        return _by_code(first.code)
    return ELSEWHERE if cause else COMPUTING


def _by_code(code: str) -> tuple[str, ...]:
    return BY_CODE.get(code) or BY_CODE.get(code[:3]) or ELSEWHERE


def _tables(report: Report, places: list[str] | tuple[str, ...]) -> tuple[Section, ...]:
    return tuple(section for place in dict.fromkeys(places) for section in _table(report, place))


def _table(report: Report, place: str) -> Iterator[Section]:
    slug, _, which = place.partition(":")
    for section in report.sections:
        if section.slug == slug:
            grids = [block for block in blocks_for_people(section.blocks) if isinstance(block, Grid) and block.rows]
            titled = [grid for grid in grids if grid.title.startswith(which)]
            for grid in (grids[int(which) :] if which.isdecimal() else titled)[:1]:
                if slug == "host_waits" and _largest_share(grid) < _WORTH_A_TABLE:
                    continue
                table = _TITLE_END.split(grid.title, maxsplit=1)[0]
                title = f"{section.title} · {table}" if table else section.title
                rows = {OUTSIDE: _largest_first, OTHER_THREADS: _busy_first}.get(place, _as_they_are)(grid)
                yield Section(slug, title, (replace(grid, title="", rows=rows, complete=False),))


def _largest_share(grid: Grid) -> float:
    shares = [index for index, column in enumerate(grid.columns) if is_share(column)]
    return max((number_of(row[index]) for row in grid.rows for index in shares), default=1.0)


def _as_they_are(grid: Grid) -> tuple[Row, ...]:
    return grid.rows


def _busy_first(grid: Grid) -> tuple[Row, ...]:
    """Rows of what threads prepare for the steps, then the others; waits for the next piece of work last."""
    kinds = [index for index, column in enumerate(grid.columns) if column.name == "kind"]
    return tuple(sorted(grid.rows, key=lambda row: _TURN.get(str(row[kinds[0]]), 1))) if kinds else grid.rows


def _largest_first(grid: Grid) -> tuple[Row, ...]:
    """The rows of a table that is in the order of time, the longest first."""
    times = [index for index, column in enumerate(grid.columns) if column.unit == "ns"]
    return tuple(sorted(grid.rows, key=lambda row: -number_of(row[times[0]]))) if times else grid.rows
