"""Feeds spoilt inputs to the C code alone, built with AddressSanitizer and UndefinedBehaviorSanitizer.

    python -m tests.fuzz.native --minutes 60       build, and run on all cores
    python -m tests.fuzz.native --case 4711        one case again

The extensions are built into a folder of their own. What runs them loads nothing but them and the standard library, so
that there are thousands of cases a second; arguments are bytes from files, mutated or made up. An exception is what
spoilt input may end in; a report of a sanitizer, a crash or a hang is not.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "sample_traces")]

from tests.fuzz.mutations import json_text, nasty, octets, wire  # noqa: E402 (found through the line above)
from tests.fuzz.mutations.wire import SPACE  # noqa: E402

FLAGS = "-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:abort_on_error=1:allocator_may_return_null=1:"
    "max_allocation_size_mb=512",
    "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
    "PYTHONMALLOC": "malloc",  # else small objects lie side by side in blocks that the sanitizer takes for one
}
CASE_S = 20
GROUP = 64
"""Number of cases that start with the same input: to spoil its structure takes longer than to read it."""
EXPECTED = (ValueError, OverflowError, MemoryError, RuntimeError)
_PROGRESS_S = 10.0
_LEAF = 13
"""First byte of a leaf page of a table."""


# --- the parent -------------------------------------------------------------------------------------------------------


def build(folder: Path) -> None:
    """Build the extensions with sanitizers, by the project's own CMake file."""
    options = ["-DSKBUILD_PROJECT_NAME=traceviz", "-DCMAKE_BUILD_TYPE=None", f"-DPython_EXECUTABLE={sys.executable}"]
    command = ["cmake", "-S", str(REPOSITORY), "-B", str(folder), *options, f"-DCMAKE_C_FLAGS={FLAGS}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(folder)], check=True, stdout=subprocess.DEVNULL)


def write_samples(folder: Path) -> None:
    """Write the initial inputs of cases, and the arguments for the scanner of events."""
    from tests.fuzz.formats import kineto, tf_trace, xplane
    from tests.fuzz.pages import databases
    from traceviz.parsers.kineto.raw import ARGUMENTS, PHASES, Kind

    folder.mkdir(parents=True, exist_ok=True)
    for name, content in xplane.contents().items():
        (folder / f"{name}.xplane").write_bytes(content)
    for name, content in (*kineto.contents().items(), ("tf", tf_trace.training())):
        (folder / f"{name}.events").write_bytes(content)
    for name, content in databases(folder).items():
        (folder / f"{name}.pages").write_bytes(content)
    keys: list[tuple[str, int, int]] = []
    for column, argument in enumerate(ARGUMENTS):
        for place, key in enumerate(argument.keys):
            keys.append((key, column, len(keys) - 1 if place else -1))
    integers = [argument.kind is Kind.INTEGER for argument in ARGUMENTS]
    (folder / "arguments.json").write_text(json.dumps({"phases": PHASES, "integers": integers, "keys": keys}))


def environment() -> dict[str, str]:
    """Return the environment of a process that runs the extensions."""
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    return {**os.environ, **OPTIONS, "LD_PRELOAD": found.stdout.strip()}


class Worker:
    """A process that runs groups of cases from a number on, every ``step``-th; and what it did."""

    def __init__(self, folder: Path, first: int, step: int) -> None:
        self.folder, self.step, self.next, self.last = folder, step, first, -1
        self.place = folder / f"worker-{first % step}"
        self.place.write_bytes(bytes(8 * len(_FIGURES)))
        self.errors = folder / f"worker-{first % step}.stderr"
        self.start()

    def start(self) -> None:
        """Start at the next group."""
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.fuzz.native", "--work"),
                *(str(self.folder), str(self.next), str(self.step), str(self.place)),
            ],
            cwd=REPOSITORY,
            env=environment(),
            stderr=self.errors.open("wb"),
        )
        self.began = time.monotonic()

    def figures(self) -> dict[str, int]:
        """Return the progress."""
        return dict(zip(_FIGURES, struct.unpack(f"<{len(_FIGURES)}q", self.place.read_bytes()), strict=True))


_KINDS = ("xplane", "events", "columns", "pages")
_FIGURES = ("current", *_KINDS, "refused")


def run(options: argparse.Namespace) -> int:
    """Build, run, and print what came of it; gives the exit code."""
    folder = options.build.resolve()
    build(folder)
    write_samples(folder / "samples")
    count = options.workers or len(os.sched_getaffinity(0))
    workers = [Worker(folder, options.first + place, count) for place in range(count)]
    began = told = time.monotonic()
    crashes: list[dict[str, Any]] = []
    total = Counter[str]()
    while time.monotonic() - began < options.minutes * 60:
        time.sleep(1)
        for worker in workers:
            now = worker.figures()
            if worker.process.poll() is None:
                if now["current"] != worker.last:
                    worker.last, worker.began = now["current"], time.monotonic()
                elif time.monotonic() - worker.began > 10 * CASE_S:
                    worker.process.kill()
                continue
            report = worker.errors.read_text(errors="replace")
            title = next((line for line in report.splitlines() if "ERROR" in line or "runtime error" in line), "died")
            crashes.append(
                {"case": now["current"], "title": title, "status": worker.process.returncode, "report": report}
            )
            print(f"case {now['current']}: {title}\n{report[-3000:]}", flush=True)
            worker.next = now["current"] // GROUP + worker.step
            if len(crashes) < 50:
                worker.start()
        if time.monotonic() - told > _PROGRESS_S:
            told = time.monotonic()
            total = _summed(workers)
            cases = sum(total[kind] for kind in _KINDS)
            print(f"{cases:,} cases, {cases / (told - began):,.0f} a second, {len(crashes)} crashes", flush=True)
    for worker in workers:
        worker.process.kill()
        worker.process.wait()
    total = _summed(workers)
    result = {"seconds": round(time.monotonic() - began, 1), "counts": total, "crashes": crashes}
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        name = options.name or f"native-{time.strftime('%Y%m%dT%H%M%S')}"
        (options.output / f"{name}.json").write_text(json.dumps(result, indent=1))
    print(f"{dict(total)} in {result['seconds']:,} s, {len(crashes)} crashes")
    return 1 if crashes else 0


def _summed(workers: list[Worker]) -> Counter[str]:
    total = Counter[str]()
    for worker in workers:
        total.update({name: value for name, value in worker.figures().items() if name != "current"})
    return total


# --- the process that runs the extensions -----------------------------------------------------------------------------


def load(folder: Path, name: str) -> ModuleType:
    """Return an extension from a folder."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.abi3.so")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Cases:
    """The cases: what a number stands for."""

    def __init__(self, folder: Path) -> None:
        self.xplane, self.kineto, self.sqlite = (load(folder, name) for name in ("_xplane", "_kineto", "_sqlite"))
        self.arrays = load(folder, "_compiled")
        samples = folder / "samples"
        self.spaces = [path.read_bytes() for path in sorted(samples.glob("*.xplane"))]
        self.events = [path.read_bytes() for path in sorted(samples.glob("*.events"))]
        self.databases = [path.read_bytes() for path in sorted(samples.glob("*.pages"))]
        told = json.loads((samples / "arguments.json").read_text())
        keys = tuple((key.encode(), column, before) for key, column, before in told["keys"])
        self.told = told["phases"].encode(), bytes(told["integers"]), keys
        self.columns = len(told["integers"])
        self.group, self.kind, self.data = -1, "", b""

    def run(self, number: int) -> str:
        """Run a case; return its kind, or that a proper exception refused it."""
        group, place = divmod(number, GROUP)
        if group != self.group:
            random = Random(f"native/{group}")
            self.group, self.kind = group, random.choice(_KINDS)
            self.data = self._input(random)
        random = Random(f"native/{group}/{place}")
        data = self.data
        for _ in range(random.choice((1, 1, 2, 4)) if place else 0):
            data = octets.spoil(random, data)
        try:
            run = {"xplane": self._space, "events": self._events, "columns": self._columns, "pages": self._pages}
            run[self.kind](random, data)
        except (*EXPECTED, self.sqlite.NotPlainError):
            return f"refused {self.kind}"
        return self.kind

    def _input(self, random: Random) -> bytes:
        """Return a file that was changed a few times."""
        if self.kind == "columns":
            return b""
        if self.kind == "pages":
            return random.choice(self.databases)
        change = (
            (lambda data: wire.change(random, data, SPACE))
            if self.kind == "xplane"
            else (lambda data: json_text.change(random, data))
        )
        data = random.choice(self.spaces if self.kind == "xplane" else self.events)
        for _ in range(random.choice((0, 1, 1, 2, 4))):
            data = change(data)
        return data

    def _space(self, random: Random, data: bytes) -> None:
        begin = random.randrange(len(data) + 1) if random.random() < 0.2 else 0
        spans = [(begin, len(data) if random.random() < 0.8 else random.randrange(begin, len(data) + 1))]
        with suppress(ValueError):
            spans += _parts(data)
        for first, last in spans:
            try:
                plane = self.xplane.scan_plane(
                    data, first, last, bytearray
                )  # each column is a copy: it has bounds of its own
            except EXPECTED:
                continue
            self._plane(random, plane)

    def _plane(self, random: Random, plane: dict[str, Any]) -> None:
        """Use the columns of a plane as the reader does."""
        rows = len(plane["event_line"]) // 4
        starts, durations = bytearray(8 * rows), bytearray(8 * rows)
        bases = struct.pack(f"<{len(plane['lines'])}q", *(line[2] for line in plane["lines"]))
        given = plane["event_offset"], plane["event_duration"], plane["event_line"], bases, starts, durations
        self._try(self.xplane.nanoseconds, *given)
        self._try(self.xplane.order, starts, bytes(random.choice((0, 1, 1)) for _ in range(rows)), bytearray(4 * rows))
        self._try(self.xplane.mark, plane["event_name"], bytearray(len(plane["names"])))
        place = bytearray(4 * rows)
        self._try(self.xplane.invert, plane["stat_event"], place)
        stats = len(plane["stat_key"]) // 4
        self._try(self.xplane.take, plane["stat_value"], 8, place, nasty.integer(random), bytearray(8 * rows))
        self._try(self.xplane.sort, plane["stat_key"], bytearray(8 * (len(plane["texts"]) + 1)), bytearray(4 * stats))
        events = plane["event_line"], starts, durations, 0, bytearray(4 * rows)
        regions = b"", b"", b"", rows, bytearray()
        self._try(self.xplane.nest, events, regions, b"" if random.random() < 0.5 else bytes(rows))

    @staticmethod
    def _try(function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except EXPECTED:
            return None

    def _events(self, random: Random, data: bytes) -> None:
        scanner = self.kineto.Scanner(*self.told)
        begin = max(data.find(b"[") + 1, 0) if random.random() < 0.9 else random.randrange(len(data) + 1)
        size = random.choice((1, 7, 64, 1000, 1 << 20))
        size = max(size, len(data) // 60)  # each block is looked at again with the next
        text, place = b"", 0
        for at in itertools.chain(range(begin, len(data), size)):
            text, place = text[place:] + data[at : at + size], 0
            for _ in range(20):
                stop, place, broken = scanner.feed(text, place)
                if stop != 2 or broken <= place:  # it wants more, or is at the end
                    break
                place = broken
            if stop == 1:
                break
        if random.random() < 0.5:  # results of another; some may be taken already
            other = self.kineto.Scanner(*self.told)
            other.feed(data, random.choice((begin, random.randrange(len(data) + 1))))
            if random.random() < 0.1:
                self._try(random.choice((other.texts, other.counts, other.phases)))
            self._try(scanner.join, random.choice((other, other, other, other, scanner)))
            if random.random() < 0.1:
                self._try(other.feed, data, begin)
                self._try(other.texts)
        takes = [scanner.phases, scanner.counts, scanner.texts]
        takes += [lambda number=number: scanner.member(number) for number in range(-1, 7)]
        takes += [lambda which=which: scanner.times(which) for which in range(-1, 3)]
        takes += [lambda column=column: scanner.column(column) for column in range(-1, self.columns + 1)]
        random.shuffle(takes)
        for take in takes[: random.choice((3, len(takes), len(takes)))]:
            self._try(take)
        if random.random() < 0.1:  # once more after all was taken
            self._try(scanner.feed, data, random.randrange(len(data) + 1))
            self._try(scanner.texts)

    def _pages(self, random: Random, data: bytes) -> None:
        """Read pages of a database as leaves of a table of some width, most of them by the right one."""
        size = random.choice((int.from_bytes(data[16:18], "big") % 65535, 512, 1024, 65536))
        count = -(-len(data) // max(size, 1))
        pages = [place // size + 1 for place in range(size, len(data), size) if data[place] == _LEAF]
        if random.random() < 0.2:
            pages += [random.choice((1, 0, -1, count, count + 1, 2**31, 2**62)), random.randrange(2, count + 3)]
        elif random.random() < 0.2:
            random.shuffle(pages)
        width, room = random.choice((6, 6, 6, 6, 1, 2, 9, 0)), random.choice((2_000, 2_000, 10, 0))
        places = [random.randrange(width + 1) if random.random() < 0.02 else number for number in range(width or 1)]
        filters = [
            (random.choice(places), self._longs(random, random.randrange(3)), random.random() < 0.5)
            for _ in range(random.choice((0, 0, 1, 2)))
        ]
        columns = [self._page_column(random, places, room) for _ in range(random.randrange(5))]
        usable = size - random.choice((0, 0, 0, 8, 32, 33, 255))
        with open(os.memfd_create("pages"), "w+b") as file:  # noqa: PTH123 (a file without a name)
            file.write(data)
            file.flush()
            alone = random.random() < 0.3
            numbers = struct.pack(f"<{len(pages)}q", *pages)
            decoded = self.sqlite.decode(
                file.fileno(), size, usable, count, numbers, width, alone, room, tuple(filters), tuple(columns)
            )
        codes = self._codes(random, 20)
        self._try(self.sqlite.recode, codes, random.randbytes(160), random.choice((1, 2, 4, 8, 3)), bytearray(160))
        assert decoded[0] <= room

    @staticmethod
    def _page_column(random: Random, places: list[int], room: int) -> tuple[Any, ...]:
        """Use some columns, mostly in allowed ways."""
        operation = random.choice((0, 0, 0, 1, 2, 2, 3, 3))
        width = random.choice((2, 4, 8)) if operation == 0 else 8 if operation == 1 else 4
        parts = random.choices(places, k=(1, 2, random.choice((1, 2, 3, 6)), random.choice((1, 2)))[operation])
        if operation == 3 and random.random() < 0.8:
            parts[0] = 4
        if random.random() < 0.03:
            parts, width = parts[:1] * random.randrange(8), random.choice((0, 1, 3, 16))
        out = bytearray(room * width) if operation == 1 or random.random() < 0.8 else None
        return operation, tuple(parts), out, width, nasty.integer(random), random.random() < 0.3, nasty.integer(random)

    def _nested(self, random: Random, rows: int, code: bytes) -> None:
        """Call functions for nested calls; half of the time with sorted ones, because they soon decline others."""
        n = self.arrays
        calls = [(random.randrange(2), random.randrange(9), random.randrange(12)) for _ in range(rows)]
        calls = sorted(calls, key=lambda call: (call[0], call[1], -call[2])) if random.random() < 0.8 else calls
        group, start, end = (struct.pack(f"<{rows}q", *(call[which] for call in calls)) for which in range(3))
        if random.random() < 0.2:
            start = self._longs(random, rows)
        parent, wanted = bytearray(4 * rows), random.randbytes(rows)
        match random.randrange(6):
            case 5:
                few = struct.pack(f"<{rows}i", *(random.randrange(3) for _ in range(rows)))
                near = struct.pack(f"<{rows}q", *(random.randrange(9) for _ in range(rows)))
                ids = random.choice((near, self._longs(random, rows)))
                one, other = ((few, ids, random.choice((b"", bytes(wanted)))) for _ in range(2))
                owners, least, width = random.choice((0, 1, 3)), random.choice((0, 1, -(2**63))), random.choice((9, 1))
                if random.random() < 0.2:
                    least, width = random.choice(((2**63 - 1, 2), (0, 0), (5, 2**64 - 1)))
                distinct = struct.pack(f"<{owners}i", *range(owners))
                table = bytearray(4 * owners * min(width, 9))
                n.match(*one, *other, distinct, least, width, table, self._room(random, 4 * rows))
            case 0:
                depth = self._room(random, 4 * rows)
                self._try(n.nest, group, start, end, random.random() < 0.5, depth, parent)
                given = parent if random.random() < 0.8 else code
                moments = self._longs(random, random.choice((rows, rows, 9)))
                keys = random.choice((group, struct.pack(f"<{len(moments) // 8}q", *[1] * (len(moments) // 8))))
                self._try(n.running, group, start, end, given, keys, moments, self._room(random, len(moments) // 2))
                self._try(n.nearest, given, wanted, self._room(random, 4 * rows))
                self._try(n.topmost, given, wanted, self._room(random, 4 * rows))
                self._try(n.contexts, given, code, self._room(random, 4 * rows), bytearray(4 * rows))
                owner, first = random.choice((b"", code)), random.choice((0, 0, 1, -1, 2**62))
                self._try(n.add_own, first, given, start, wanted, owner, self._room(random, 8 * rows))
                room = (bytearray(16 * rows), bytearray(16 * rows), self._room(random, 8 * rows))
                depth = random.choice((b"", depth, code))
                n.innermost(group, start, end, depth, given, random.choice((b"", wanted)), *room)
            case 1:
                n.outer(group, end, code, random.choice((rows, 0, -1, 2**31)), self._room(random, rows))
            case 2:
                columns = tuple(code for _ in range(random.choice((0, 1, 2, 16, 17))))
                n.alike(columns, self._room(random, 4 * rows), bytearray(4 * rows))
            case 3:
                n.order(group, start, end, self._longs(random, rows), self._room(random, 4 * rows))
                order, width = bytearray(4 * rows), random.choice((1, 2, 4, 8))
                far = n.order_times(random.choice((start, group)), order)
                given, far = random.choice((order, order, code)), random.choice((far, far, 0, 2**40))
                self._try(n.move, given, width, far, self._room(random, width * rows))
            case _:
                n.add(start, end, self._longs(random, rows + 1), end, start, code, self._room(random, 8 * rows))

    def _sweeps(self, random: Random, rows: int) -> None:
        """Call functions for sorted times, mostly with valid sets, and those for groups."""
        others = random.randrange(6)
        one, other = ([self._ordered(random, count) for _ in range(2)] for count in (rows, others))
        set_one = self._set(random, rows) if random.random() < 0.8 else (one[0], one[1])
        set_other = self._set(random, others) if random.random() < 0.8 else (other[0], other[1])
        i, room = self.arrays, 8 * (rows + others)
        done = self._longs(random, rows + 1)
        match random.randrange(9):
            case 0:
                function, buffers = i.merge, [*one, self._room(random, 8 * rows), self._room(random, 8 * rows)]
            case 1:
                function = random.choice((i.unite, i.intersect, i.subtract))
                buffers = [*set_one, *set_other, self._room(random, room), self._room(random, room)]
            case 2:
                function, buffers = i.concurrent, [*one, self._room(random, 8 * rows), self._room(random, 8 * rows)]
            case 3:
                function = i.before
                buffers = [*set_one, done, self._longs(random, others), self._room(random, 8 * others)]
            case 4:
                function, buffers = i.shared, [*set_one, done, *other, self._room(random, 8 * others)]
            case 5:
                function, buffers = i.ended, [one[1], self._longs(random, others), self._room(random, 8 * others)]
            case 6:
                function = i.add_by
                values = [self._longs(random, others)] if random.random() < 0.5 else []
                buffers = [self._codes(random, others), *values, self._room(random, 8 * rows)]
            case 7:
                function = i.squares
                buffers = [one[0], self._ordered(random, others + 1), other[0], self._room(random, 8 * others)]
            case _:
                function, buffers = i.weigh, [*set_one, *other, self._longs(random, others)]
        numbers = {i.concurrent: [random.choice((1, 2, 3, 0, -1, 2**62))], i.weigh: [nasty.integer(random)]}
        wide = [
            self._wide(buffer, "i" if function is i.add_by and not place else "q")
            for place, buffer in enumerate(buffers)
        ]
        function(*wide, *numbers.get(function, []))

    @staticmethod
    def _wide(data: bytes | bytearray, kind: str) -> memoryview:
        """Return ``data`` as whole integers."""
        view = memoryview(data)
        return view if len(view) % struct.calcsize(kind) else view.cast("B").cast(kind)

    @classmethod
    def _ordered(cls, random: Random, rows: int) -> bytes:
        """Return times, mostly in order."""
        times = [random.randrange(-5, 60) for _ in range(rows)]
        if random.random() < 0.2:
            return cls._longs(random, rows)
        return struct.pack(f"<{rows}q", *(sorted(times) if random.random() < 0.8 else times))

    @staticmethod
    def _set(random: Random, rows: int) -> tuple[bytes, bytes]:
        """Return starts and ends of a set of ``rows`` members."""
        bounds = sorted(random.sample(range(-10, 20 + 4 * rows), 2 * rows))
        return struct.pack(f"<{rows}q", *bounds[::2]), struct.pack(f"<{rows}q", *bounds[1::2])

    def _columns(self, random: Random, _: bytes) -> None:
        """Call functions for columns, mostly with columns that fit each other."""
        rows = random.choice((0, 1, 2, 3, 8, 60))
        code = self._codes(random, rows)
        x = self.xplane
        match random.randrange(14):
            case 10 | 11:
                self._nested(random, rows, code)
            case 12 | 13:
                self._sweeps(random, rows)
            case 0:
                width = random.choice((1, 4, 8, 8, 2, 0))
                x.take(
                    random.randbytes(width * rows), width, code, nasty.integer(random), self._room(random, width * rows)
                )
            case 1:
                x.mark(code, self._room(random, rows))
            case 2:
                x.invert(code, self._room(random, 4 * rows))
            case 3:
                given = self._longs(random, rows), self._longs(random, rows), code, self._longs(random, rows)
                x.nanoseconds(*given, self._room(random, 8 * rows), self._room(random, 8 * rows))
            case 4:
                kept = bytes(random.choice((0, 1, 2)) for _ in range(rows))
                x.order(self._longs(random, rows), kept, self._room(random, 4 * sum(map(bool, kept))))
            case 5:
                x.sort(code, self._room(random, 8 * (rows + 1)), self._room(random, 4 * rows))
            case 6:
                x.join(self._longs(random, rows), self._longs(random, rows), random.choice((-1, 0, 1, 3, 2**31 - 1)))
            case 7:
                x.nest(
                    self._spans(random, rows, 0),
                    self._spans(random, rows, rows),
                    random.choice((b"", bytes(rows), b"\1" * rows)),
                )
            case 8:
                random.choice((x.depths, lambda parent, found: x.nearest(parent, random.randbytes(rows), found)))(
                    code, self._room(random, 4 * rows)
                )
            case _:
                links = [self._links(random, rows) for _ in range(2)]
                levels = self._codes(random, rows)
                x.spread(*links[0], *links[1], code, levels, random.random() < 0.5, self._room(random, 4 * rows))

    @staticmethod
    def _codes(random: Random, rows: int) -> bytes:
        """Return numbers of rows, a few of them wrong."""
        wrong = random.choice((0.0, 0.0, 0.02, 0.5))
        numbers = (
            random.choice((-1, -2, rows, rows + 1, 2**31 - 1, -(2**31)))
            if random.random() < wrong
            else random.randrange(rows)
            for _ in range(rows)
        )
        return struct.pack(f"<{rows}i", *numbers)

    @staticmethod
    def _longs(random: Random, rows: int) -> bytes:
        if random.random() < 0.5:
            return struct.pack(f"<{rows}q", *(nasty.integer(random) for _ in range(rows)))
        return struct.pack(f"<{rows}q", *sorted(random.randrange(-5, 50) for _ in range(rows)))

    @staticmethod
    def _room(random: Random, size: int) -> bytearray:
        return bytearray(max(size + (random.choice((-8, -4, -1, 1, 4)) if random.random() < 0.05 else 0), 0))

    def _spans(self, random: Random, rows: int, base: int) -> tuple[Any, ...]:
        lines = struct.pack(f"<{rows}i", *sorted(random.choice((0, 0, 1, -7)) for _ in range(rows)))
        base += random.choice((0, 0, 0, 0, -1, 5, 2**31 - 1 - base))
        return lines, self._longs(random, rows), self._longs(random, rows), base, self._room(random, 4 * rows)

    def _links(self, random: Random, nodes: int) -> tuple[bytes, bytes]:
        links = random.randrange(3 * nodes + 1) if nodes else 0
        first = [0, *sorted(random.randrange(links + 1) for _ in range(nodes))]
        first[-1] = links if nodes else 0
        if random.random() < 0.05:
            first[random.randrange(len(first))] = nasty.integer(random)
        other = b"".join(self._codes(random, nodes) for _ in range(3))[: 4 * links]
        return struct.pack(f"<{len(first)}q", *first), other


def _parts(data: bytes) -> list[tuple[int, int]]:
    """Return the positions of the planes of a file."""
    spans, at = [], 0
    for tag, kind, value in wire.decoded(data, {}):
        if kind != 2:
            raise ValueError(kind)
        end = data.index(value, at) + len(value)
        if tag == 1:
            spans.append((end - len(value), end))
        at = end
    return spans[:5]


def work(folder: Path, first: int, step: int, place: Path) -> None:
    """Run cases until the process is ended."""
    cases = Cases(folder)
    with place.open("r+b") as file, mmap.mmap(file.fileno(), 0) as figures:
        groups = itertools.count(first, step)
        for number in (group * GROUP + place for group in groups for place in range(GROUP)):
            struct.pack_into("<q", figures, 0, number)
            signal.alarm(CASE_S)
            kind = cases.run(number)
            is_refused = kind.startswith("refused")
            for name in ("refused", kind.split()[1]) if is_refused else (kind,):
                at = 8 * _FIGURES.index(name)
                struct.pack_into("<q", figures, at, struct.unpack_from("<q", figures, at)[0] + 1)


def main() -> int:
    """Run the command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.native", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="how long")
    parser.add_argument("--workers", type=int, help="processes (one per core)")
    parser.add_argument("--first", type=int, default=0, help="number of the first group of cases")
    parser.add_argument("--output", type=Path, help="folder for counts and crashes")
    parser.add_argument("--name", help="name of the file of counts")
    parser.add_argument(
        "--build", type=Path, default=REPOSITORY / "build" / "asan", help="folder of the built extensions"
    )
    parser.add_argument("--case", type=int, help="run one case again")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(Path(options.work[0]), int(options.work[1]), int(options.work[2]), Path(options.work[3]))
        return 0
    if options.case is not None and "LD_PRELOAD" not in os.environ:
        folder = options.build.resolve()
        build(folder)
        write_samples(folder / "samples")
        command = [sys.executable, "-m", "tests.fuzz.native", "--case", str(options.case), "--build", str(folder)]
        return subprocess.run(command, cwd=REPOSITORY, env=environment(), check=False).returncode
    if options.case is not None:
        print(Cases(options.build).run(options.case))
        return 0
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
