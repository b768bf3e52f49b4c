"""Conversion of py-spy's trace of changes (``--format chrometrace``) to files of stacks, without the machine's folders.

py-spy writes a frame's start at the first sample that has it and its end at the first sample without it, in
microseconds since py-spy started. A sample covers the time since the previous one: times are moved by one period.

::

    samples   a a b b b c          B a 0  E a 20  B b 20  E b 50  B c 50
    covers   aa aa bb bb bb cc     a: -10 to 10, b: 10 to 40
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from traceviz.collectors.inject.traceviz_inject.stacks.frame_names import NATIVE, STANDARD, Places

FILE = "stacks.jsonl"
_PIECE = 1 << 20
_MOST_EVENT = 16 << 20
"""py-spy writes no events longer than this."""
_MODULE = "<module>"
"""Python's name for the code of a script or module."""
_UNNAMED = "(compiled)"
"""Name for functions that have only an address, which differs between processes."""
_OURS = -1
_MOST_ROWS = 1000
"""Rows of one line of samples."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time at which py-spy's clock is zero, on the monotonic clock and on the wall clock, in nanoseconds."""

    monotonic_ns: int
    unix_ns: int


@dataclass(slots=True)
class _Thread:
    """A thread: its frames from the outermost on, and the time of their last change."""

    number: int
    frames: list[int] = field(default_factory=list)
    since_us: int = 0
    is_main: bool = False


@dataclass(slots=True)
class _Process:
    """The output for one process."""

    file: TextIO
    clock: Clock
    period_ns: int
    places: Places
    threads: dict[int, _Thread] = field(default_factory=dict)
    frames: dict[tuple[str, str, int], int] = field(default_factory=dict)
    native: set[int] = field(default_factory=set)
    stacks: dict[tuple[int | None, int], int] = field(default_factory=dict)
    rows: list[list[Any]] = field(default_factory=list)
    last_us: int = 0

    def write(self, *line: Any) -> None:
        self.file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def frame(self, name: str, file: str, line: int) -> int:
        """Return the number of a frame; :data:`_OURS` for those of our own hooks."""
        key = (name, file, line)
        if key not in self.frames:
            placed = _placed(file, self.places)
            self.frames[key] = len(self.frames) if placed is not None else _OURS
            if placed is not None:
                self.native |= {self.frames[key]} if placed[1] == NATIVE else set()
                shown = _UNNAMED if name.startswith("0x") else name
                self.write("frame", self.frames[key], shown, placed[0], line or None, placed[1])
        return self.frames[key]

    def stack(self, frames: list[int]) -> int | None:
        """Return the number of a stack; ``None`` for a stack without frames, or of a thread of our own."""
        number: int | None = None
        python = next((frame for frame in frames if frame not in self.native), None)
        for frame in frames if python != _OURS else ():
            if frame != _OURS:
                key = (number, frame)
                if key not in self.stacks:
                    self.stacks[key] = len(self.stacks)
                    self.write("stack", self.stacks[key], number, frame)
                number = self.stacks[key]
        return number

    def change(self, thread: _Thread, at_us: int) -> None:
        """End the thread's current stack at this time."""
        if at_us <= thread.since_us:
            return
        number = self.stack(thread.frames)
        if number is not None:
            start = self.clock.monotonic_ns + thread.since_us * 1000 - self.period_ns
            lasted = (at_us - thread.since_us) * 1000
            self.rows.append([start, lasted, thread.number, number, max(1, round(lasted / self.period_ns)), None, None])
        thread.since_us = at_us
        if len(self.rows) >= _MOST_ROWS:
            self.flush()

    def flush(self) -> None:
        if self.rows:
            self.write("samples", self.rows)
            self.rows = []


def write_stacks(
    source: Path, folder: Path, clock: Clock, rate_hz: float, *, ended: bool = True
) -> list[dict[str, Any]]:
    """Write a file of stacks for each process in ``source``.

    Args:
        source: The file that py-spy wrote; a truncated file is read as far as possible.
        folder: The folder that receives a folder for each process.
        clock: When py-spy was started.
        rate_hz: Samples per second.
        ended: True if py-spy recorded to the end of the program; otherwise the rest was not sampled.

    Returns:
        Facts about each process for the manifest.
    """
    processes: dict[int, _Process] = {}
    try:
        for event in _events(source):
            if event.get("ph") in ("B", "E") and {"pid", "tid", "ts", "name"} <= event.keys():
                pid = int(event["pid"])
                if pid not in processes:
                    own = folder / str(pid)
                    own.mkdir(exist_ok=True)
                    output = (own / FILE).open("w", encoding="utf-8")
                    role = "worker" if processes else "program"
                    processes[pid] = _Process(output, clock, int(1e9 / rate_hz), Places(str(Path.cwd())))
                    processes[pid].write("process", {"pid": pid, "role": role, "rate_hz": rate_hz})
                    processes[pid].write("clock", clock.monotonic_ns, clock.unix_ns)
                _take(processes[pid], event)
    finally:
        for process in processes.values():
            for thread in process.threads.values():
                process.change(thread, process.last_us)
            process.flush()
            if ended:
                process.write("end", clock.monotonic_ns + process.last_us * 1000)
            process.file.close()
    return [{"pid": pid, "threads": len(process.threads)} for pid, process in processes.items()]


def _take(process: _Process, event: dict[str, Any]) -> None:
    """Process the start or the end of a frame."""
    at_us, ident = int(event["ts"]), int(event["tid"])
    thread = process.threads.get(ident)
    if thread is None:
        thread = process.threads[ident] = _Thread(len(process.threads), since_us=at_us)
        process.write("thread", thread.number, None, None, False, ident)
    process.last_us = max(process.last_us, at_us)
    process.change(thread, at_us)
    if event["ph"] == "E":
        del thread.frames[-1:]
        return
    if not thread.frames:
        thread.since_us = at_us
    stated = event.get("args") or {}
    name, file, line = str(event["name"]), str(stated.get("filename") or ""), int(stated.get("line") or 0)
    if name == _MODULE and not thread.is_main and all(frame in process.native for frame in thread.frames):
        thread.is_main = True
        process.write("thread", thread.number, None, "MainThread", True, ident)
    thread.frames.append(process.frame(name, file, line))


def _placed(file: str, places: Places) -> tuple[str, str] | None:
    """Return file and origin of a frame; ``None`` for our own hooks."""
    name = file.rpartition("/")[2]
    if "/traceviz_inject/" in file:
        return None
    if name.endswith((".py", ">")) or name.startswith("<"):
        folder, _, below = file.rpartition("/lib/python")
        version, _, rest = below.partition("/")
        if folder and version.replace(".", "").isdigit() and not rest.startswith(("site-packages/", "dist-packages/")):
            return rest, STANDARD  # of the program's Python, which may differ from ours
        return places.name(file, "")
    return name or "?", NATIVE


def _events(source: Path) -> Iterator[dict[str, Any]]:
    """Yield the elements of a list, one at a time: the output of a long run does not fit into memory."""
    decoder, text = json.JSONDecoder(), ""
    with source.open(encoding="utf-8", errors="replace") as file:
        while piece := file.read(_PIECE):
            text += piece
            at = 0
            while (begin := text.find("{", at)) >= 0:
                try:
                    element, at = decoder.raw_decode(text, begin)
                except (ValueError, RecursionError):
                    break
                if isinstance(element, dict):
                    yield element
            text = text[at:] if begin < 0 else text[begin:]
            if len(text) > _MOST_EVENT:
                return
