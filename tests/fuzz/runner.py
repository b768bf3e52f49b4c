"""Runs cases in child processes, which are forked from one that has imported everything.

A child takes a batch of cases of one format, and reports before and after each. One that dies, hangs or takes
more memory than it may therefore costs its case and nothing else: the rest of its batch goes to a new child.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from tests.fuzz import oracle
from tests.fuzz.cases import Case, Depth, Format
from tests.fuzz.tally import Found, Tally, keep

BATCH = 100
"""Cases of one child."""
CPU_S = 10
"""Processor time of a case."""
WALL_S = 120
"""Time after which a silent child counts as hanging: the machine may be busy."""
MORE_MEMORY = 400 << 20
"""Memory that a case may take in addition to that of the process, in bytes."""
ADDRESS_SPACE = 3 << 30
"""Memory that a child may map in addition to its parent's, in bytes."""
_PROGRESS_S = 10.0
_TASK_S = 300


class _TimeoutError(BaseException):
    """The case took too long."""


@dataclass
class Samples:
    """Samples of the formats, written once."""

    folder: Path
    made: dict[str, list[Path]] = field(default_factory=dict)

    def of(self, format_: Format) -> list[Path]:
        """Return those of one format, in order."""
        if format_.name not in self.made:
            home = self.folder / format_.name
            if not home.exists():
                _in_child(lambda: _write_samples(format_, home))
            self.made[format_.name] = sorted(home.iterdir())
        return self.made[format_.name]


def _write_samples(format_: Format, home: Path) -> None:
    home.mkdir(parents=True)
    format_.samples(home)


def _in_child(task: Any) -> None:
    """Run a function in a process of its own: threads that it starts do not stay in this one, which forks."""
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.alarm(_TASK_S)
            task()
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("samples could not be made")


# --- in the child -----------------------------------------------------------------------------------------------------


def _status(key: str) -> int:
    """Return a figure of this process in bytes, such as VmRSS."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as lines:  # noqa: PTH123 (once per case)
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith(key)), 0)


def _limit() -> None:
    mapped = _status("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESS_SPACE, mapped + ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))

    def too_long(number: int, frame: object) -> None:
        raise _TimeoutError

    signal.signal(signal.SIGPROF, too_long)


def run_case(
    case: Case, samples: Sequence[Path], folder: Path, depth: Depth, *, limited: bool = False
) -> tuple[str, oracle.Fault | None]:
    """Make an input and examine it: what came of it, and the fault if there is one.

    What it takes to make it does not count, neither time, which ``limited`` bounds, nor memory.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    unraisable: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    before = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = case.make(samples, folder)
            before = _status("VmRSS")
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak restarts
            signal.setitimer(signal.ITIMER_PROF, CPU_S if limited else 0)
            outcome, fault = case.format.examine(made, depth), None
            if case.number < len(samples) and "Error" in outcome:
                fault = oracle.Fault("rule", "a sample is refused", detail=outcome)
    except _TimeoutError as error:
        inner = oracle.fault_of(error)
        outcome, fault = "timeout", oracle.Fault("timeout", f"over {CPU_S} s", inner.place, inner.detail)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (whatever it is, it is what is looked for; panics are no Exception)
        outcome, fault = "fault", oracle.fault_of(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.unraisablehook = hook
    if fault is None and unraisable:
        fault = oracle.fault_of(unraisable[0].exc_value)
    taken = _status("VmHWM") - before
    if fault is None and taken > MORE_MEMORY:
        fault = oracle.Fault("memory", f"over {MORE_MEMORY >> 20} MiB", detail=f"{taken >> 20} MiB")
    return outcome, fault


def _work(
    format_: Format, numbers: Sequence[int], samples: Sequence[Path], folder: Path, seen: set[int], out: int
) -> None:
    """Run a batch; one line of JSON before each case, and one after it."""
    _limit()
    gc.freeze()
    for number in numbers:
        case = Case(format_, number)
        _say(out, {"begin": number})
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        resource.setrlimit(
            resource.RLIMIT_CPU, (int(used) + 6 * CPU_S, resource.RLIM_INFINITY)
        )  # ends what no alarm can
        known = set(seen)
        outcome, fault = run_case(case, samples, folder, case.depth(seen), limited=True)
        said: dict[str, Any] = {"end": number, "outcome": outcome, "seen": list(seen - known)}
        if fault is not None:
            said["fault"] = {"kind": fault.kind, "what": fault.what, "place": fault.place, "detail": fault.detail}
        _say(out, said)


def _say(out: int, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(out, data) :]


# --- in the parent ----------------------------------------------------------------------------------------------------


@dataclass
class _Child:
    format: Format
    pid: int
    pipe: int
    folder: Path
    numbers: list[int]
    current: int | None = None
    since: float = field(default_factory=time.monotonic)
    rest: bytes = b""


@dataclass
class Runner:
    """Runs cases of several formats.

    Args:
        formats: The formats.
        first: The first number of each.
        cases: Number of cases of each; ``None`` for as many as the time allows.
        seconds: Time after which no case is started.
        workers: Children at a time.
        folder: Folder for faults.
        counts: File of the counts, which is kept up to date.
        quiet: Print nothing while it runs.
    """

    formats: Sequence[Format]
    first: int = 0
    cases: int | None = None
    seconds: float | None = None
    workers: int = 1
    folder: Path | None = None
    counts: Path | None = None
    quiet: bool = False
    tally: Tally = field(default_factory=Tally)
    _seen: dict[str, set[int]] = field(default_factory=dict)
    _waiting: list[tuple[Format, list[int]]] = field(default_factory=list)

    def run(self) -> Tally:
        """Run them all."""
        began = time.monotonic()
        told = began
        with tempfile.TemporaryDirectory(prefix="traceviz-fuzz-") as name:
            samples = Samples(Path(name, "samples"))
            for format_ in self.formats:
                samples.of(format_)
            batches = self._batches()
            children: list[_Child] = []
            places = iter(count())
            while True:
                is_late = self.seconds is not None and time.monotonic() - began > self.seconds
                while len(children) < self.workers and not is_late:
                    batch = self._waiting.pop() if self._waiting else next(batches, None)
                    if batch is None:
                        break
                    children.append(self._start(*batch, samples, Path(name, f"work-{next(places) % 64}")))
                if not children:
                    break
                self._listen(children, samples, stop=is_late)
                self.tally.seconds = time.monotonic() - began
                if time.monotonic() - told > _PROGRESS_S:
                    told = time.monotonic()
                    self._tell()
        self._save()
        return self.tally

    def _batches(self) -> Iterator[tuple[Format, list[int]]]:
        """Yield batches of the formats in turn."""
        for begin in count(self.first, BATCH):
            end = begin + BATCH if self.cases is None else min(begin + BATCH, self.first + self.cases)
            if begin >= end:
                return
            for format_ in self.formats:
                yield format_, list(range(begin, end))

    def _start(self, format_: Format, numbers: list[int], samples: Samples, folder: Path) -> _Child:
        made = samples.of(format_)
        seen = self._seen.setdefault(format_.name, set())
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            os.close(reading)
            status = 1
            try:
                errors = os.open(os.devnull, os.O_WRONLY)
                os.dup2(errors, 1)
                os.dup2(os.open(folder.with_suffix(".stderr"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
                _work(format_, numbers, made, folder, seen, writing)
                status = 0
            finally:
                if status:
                    sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
                os._exit(status)
        os.close(writing)
        return _Child(format_, pid, reading, folder, numbers)

    def _listen(self, children: list[_Child], samples: Samples, *, stop: bool) -> None:
        """Read messages of the children; handle those that end or hang."""
        ready, _, _ = select.select([child.pipe for child in children], [], [], 1.0)
        for child in list(children):
            if child.pipe in ready:
                data = os.read(child.pipe, 1 << 16)
                *lines, child.rest = (child.rest + data).split(b"\n")
                for line in lines:
                    self._take(child, json.loads(line), samples)
                if not data:
                    children.remove(child)
                    self._ended(child, samples, stop=stop)
            elif time.monotonic() - child.since > WALL_S:
                os.kill(child.pid, signal.SIGKILL)
                child.since = time.monotonic()

    def _take(self, child: _Child, message: dict[str, Any], samples: Samples) -> None:
        child.since = time.monotonic()
        if "begin" in message:
            child.current = message["begin"]
            return
        child.current = None
        child.numbers.remove(message["end"])
        self._seen[child.format.name].update(message["seen"])
        case = Case(child.format, message["end"])
        if "fault" in message:
            self._add_fault(case, message["fault"], samples)
        else:
            self.tally.add(child.format.name, message["outcome"])

    def _ended(self, child: _Child, samples: Samples, *, stop: bool) -> None:
        """Handle the end of a child, normal or by its current case; a new child runs the rest of its batch."""
        os.close(child.pipe)
        _, status = os.waitpid(child.pid, 0)
        if child.current is not None:
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            what = signal.Signals(number).name if number else f"exit {os.waitstatus_to_exitcode(status)}"
            detail = child.folder.with_suffix(".stderr").read_text(encoding="utf-8", errors="replace")[-6000:]
            kind = "timeout" if number in {signal.SIGXCPU, signal.SIGKILL} else "signal"
            child.numbers.remove(child.current)
            place = next((line.strip()[:120] for line in detail.splitlines() if "panicked" in line), "")
            fault = {"kind": kind, "what": what, "place": place, "detail": detail}
            self._add_fault(Case(child.format, child.current), fault, samples)
        if child.numbers and not stop:
            self._waiting.append((child.format, child.numbers))
        shutil.rmtree(child.folder, ignore_errors=True)

    def _add_fault(self, case: Case, fault: dict[str, str], samples: Samples) -> None:
        found = self.tally.add_fault(case.format.name, case.command, fault)
        if found is None:
            return
        if not self.quiet:
            print(f"\r{found.title}\n    {case.command}", flush=True)
        if self.folder is not None:
            self._keep(case, found, samples)

    def _keep(self, case: Case, found: Found, samples: Samples) -> None:
        assert self.folder is not None
        with tempfile.TemporaryDirectory() as name:
            made = Path(name)
            with suppress(RuntimeError):
                _in_child(lambda: case.make(samples.of(case.format), made) and None)
            keep(found, next(iter(sorted(made.iterdir())), None), self.folder)

    def _save(self) -> None:
        if self.counts is not None:
            self.tally.save(self.counts)

    def _tell(self) -> None:
        self._save()
        if self.quiet:
            return
        rate = self.tally.cases / self.tally.seconds if self.tally.seconds else 0
        left = "" if self.seconds is None else f", {max(self.seconds - self.tally.seconds, 0) / 60:.0f} min left"
        print(f"{self.tally.cases:,} cases, {rate:.1f} a second, {len(self.tally.found)} faults{left}", flush=True)


# A case with fewer steps ---------------------------------------------------------------------------------------------


def small(case: Case, samples: Sequence[Path], folder: Path) -> Case:
    """Return the case without each step that can go; itself if it shows no fault."""
    wanted = _shown(case, samples, folder)
    if wanted is None:
        return case
    for step in range(len(case.steps(samples))):
        less = replace(case, without=case.without | {step})
        if step not in case.without and _shown(less, samples, folder) == wanted:
            case = less
    return case


def _shown(case: Case, samples: Sequence[Path], folder: Path) -> tuple[str, str, str] | None:
    _, fault = run_case(case, samples, folder, Depth(random=case.random("depth")))
    return None if fault is None else (fault.kind, fault.what, fault.place)
