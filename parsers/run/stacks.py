"""Reader of files of Python stacks (:mod:`.stack_lines`). Damaged lines, and references to them, are left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.run.identity import IDENT
from traceviz.parsers.run.layout import STACKS_FORMAT
from traceviz.parsers.run.stack_lines import (
    ROLES,
    About,
    ClockLine,
    CostLine,
    EndLine,
    FrameLine,
    MetricLine,
    PhaseLine,
    ProcessLine,
    SamplesLine,
    StackLine,
    StoppedLine,
    ThreadLine,
    line_of,
    lines_of,
)
from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.shared.stacks import united
from traceviz.trace import schema
from traceviz.trace.plausible import LONGEST_NS, MOST_FRAMES, note_times, window_of
from traceviz.trace.rows_to_table import rows_to_table

CLOCK_STEP_NS = 100_000_000
"""Minimum change of the wall clock during recording for a note."""
_PROGRAM = ROLES[0]
_UNKNOWN_SOURCE = "program"
"""Source of a figure whose source the recording does not state, or states in an unknown word."""
_PROGRESS = 1 << 20
"""Bytes between two reports of progress."""

Values: TypeAlias = npt.NDArray[Any]


_NUMBERS = ("start_ns", "dur_ns", "thread_id", "stack_id", "samples", "cpu_ns")
_FIELDS: list[Any] = [*(pa.field(name, pa.int64()) for name in _NUMBERS), pa.field("state", pa.string())]
_SAMPLES = pa.schema(_FIELDS)


@dataclass(slots=True, eq=False)
class StackRecording:
    """A file as read; times are those of its clock.

    Args:
        about: The process; a fork that turns out to train updates it later.
        threads: Threads by number; the last line on a thread counts, because it gets its name once it runs.
        stacks: Rows of table ``stack_frames``, by their position.
        samples: Rows of table ``stacks``, and the threads' numbers.
        phases: Phases that the hooks noted.
        metrics: Figures of quality that the program reported.
        clocks: Moments on both clocks.
        cost: Cost of sampling.
        ended_ns: End of the sampler; ``None`` if it was killed.
        stopped: If sampling ended before the process did: the end of the samples, and the reason.
        left_out: Number of lines that could not be read, and of samples of undescribed threads or stacks.
    """

    about: About = field(default_factory=About)
    threads: dict[int, ThreadLine] = field(default_factory=dict)
    stacks: list[dict[str, Any]] = field(default_factory=list)
    samples: pa.Table = field(default_factory=_SAMPLES.empty_table)
    phases: list[PhaseLine] = field(default_factory=list)
    metrics: list[MetricLine] = field(default_factory=list)
    clocks: list[ClockLine] = field(default_factory=list)
    cost: dict[str, Any] = field(default_factory=dict)
    ended_ns: int | None = None
    stopped: StoppedLine | None = None
    left_out: dict[str, int] = field(default_factory=lambda: {"lines": 0, "samples": 0})
    _frames: dict[int, FrameLine] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)
    _depths: list[int] = field(default_factory=list)
    _sampled: list[pa.Table] = field(default_factory=list)

    @property
    def role(self) -> str:
        """Role of the process: the program, or a worker for it."""
        return self.about.role if self.about.role in ROLES else _PROGRAM

    @property
    def is_of_stacks(self) -> bool:
        """True for the recording of a process: files of TensorBoard hold figures alone."""
        return bool(self.samples.num_rows or self.phases or self.cost or not self.metrics)

    def take(self, line: Any) -> None:
        """Process one line."""
        match line:
            case SamplesLine():
                columns: Any = zip(*line.rows, strict=True) if line.rows else ((),) * len(_SAMPLES)
                arrays = [pa.array(column, field.type) for column, field in zip(columns, _SAMPLES, strict=True)]
                self._sampled.append(pa.Table.from_arrays(arrays, schema=_SAMPLES))
            case StackLine():
                self._add_stack(line)
            case FrameLine():
                self._frames[line.number] = line
            case ThreadLine():
                self.threads[line.number] = line
            case PhaseLine():
                self.phases.append(line)
            case MetricLine():
                self.metrics.append(line)
            case ClockLine():
                self.clocks.append(line)
            case CostLine():
                self.cost = line.stated
            case StoppedLine():
                self.stopped = line
            case EndLine():
                self.ended_ns = line.at_ns
            case ProcessLine():
                self.about = line.about

    def _add_stack(self, line: StackLine) -> None:
        frame = self._frames.get(line.frame)
        parent = None if line.parent is None else self._places.get(line.parent)
        if frame is None or (parent is None and line.parent is not None):
            self.left_out["lines"] += 1
            return
        depth = 0 if parent is None else self._depths[parent] + 1
        if depth == MOST_FRAMES:
            parent, depth = None, 0
        self._depths.append(depth)
        self._places[line.number] = len(self.stacks)
        self.stacks.append(
            {
                "stack_id": len(self.stacks),
                "parent_id": parent,
                "function": frame.function,
                "file": frame.file,
                "line": frame.line,
                "origin": frame.origin if frame.origin in schema.ORIGINS else "library",
            }
        )

    def close(self) -> None:
        """Renumber the samples to the tables' rows, and leave out those that no line describes."""
        table = pa.concat_tables([self.samples, *self._sampled]).combine_chunks()
        threads = _translate(table["thread_id"].to_numpy(), {number: at for at, number in enumerate(self.threads)})
        stacks = _translate(table["stack_id"].to_numpy(), self._places)
        described = (threads >= 0) & (stacks >= 0)
        self.left_out["samples"] += int(table.num_rows - described.sum())
        for name, values in (("thread_id", threads), ("stack_id", stacks)):
            table = table.set_column(table.column_names.index(name), name, pa.array(values))
        self.samples = table.filter(pa.array(described)).cast(_SAMPLES)


def _translate(numbers: Values, of: dict[int, int]) -> Values:
    """Return the meaning of each of ``numbers``; -1 for unknown ones."""
    known = np.array(sorted(of), np.int64)
    meant = np.array([of[number] for number in known.tolist()], np.int64)
    if not known.size:
        return np.full(numbers.size, -1, np.int64)
    place = np.minimum(np.searchsorted(known, numbers), known.size - 1)
    return np.where(known[place] == numbers, meant[place], -1)


# The file -------------------------------------------------------------------------------------------------------------


def _read_recording(path: Path, options: ReadRequest) -> StackRecording:
    recording = StackRecording()
    size = path.stat().st_size
    done = reported = 0
    with path.open("rb") as file:
        for text in lines_of(file):
            done += len(text)
            line = line_of(text)
            if line is None:
                recording.left_out["lines"] += 1
            else:
                recording.take(line)
            if done - reported >= _PROGRESS:
                reported = done
                options.progress("stacks", done, size)
    recording.close()
    return recording


# Tables ---------------------------------------------------------------------------------------------------------------


def read_stacks(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a file of stacks. Their clock is the machine's wall clock, zero at the process's start.

    Raises:
        DamagedTraceError: nothing in the file can be read.
    """
    recording = _read_recording(path, options)
    if not (recording.samples.num_rows or recording.phases or recording.metrics or recording.about.pid is not None):
        raise DamagedTraceError(f"{path} cannot be read.", "No line of it describes samples.", "Record again.")
    notes = Notes()
    ours = _Placed.of(recording, notes)
    yield "run", rows_to_table("run", [ours.run()], notes)
    yield "devices", schema.table("devices").empty()
    about = recording.about
    yield "processes", rows_to_table("processes", [{"process_id": 0, "pid": about.pid, "name": about.name}], notes)
    yield "threads", ours.threads(notes)
    if recording.metrics and options.wants("metrics"):
        yield "metrics", ours.metrics(notes)
    if recording.is_of_stacks:
        if options.wants("stacks") or options.wants("stack_frames"):
            frames, (numbers,) = united([rows_to_table("stack_frames", recording.stacks, notes)])
            yield "stack_frames", frames
            yield "stacks", ours.stacks(numbers)
        if options.wants("phases"):
            yield "phases", ours.phases(notes)
        if options.wants("settings"):
            yield "settings", ours.settings()
    _note(recording, notes)
    yield "notes", notes.table()


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """A recording whose zero is known.

    Args:
        recording: The recording, without samples and phases at implausible times.
        zero_ns: Zero of the tables, on the clock of the file: the start of the process.
        end_ns: Its end, or its last known moment.
        t0_unix_ns: Wall-clock time of zero, if known.
    """

    recording: StackRecording
    zero_ns: int
    end_ns: int
    t0_unix_ns: int | None

    @classmethod
    def of(cls, recording: StackRecording, notes: Notes) -> _Placed:
        """Find the zero of ``recording``, and leave out events that are too far from the others."""
        _drop_strays(recording, notes)
        offset, started = _offset(recording.clocks), recording.about.started_unix_ns
        moments = list(_moments(recording)) or [clock.at_ns for clock in recording.clocks]
        zero, end = min(moments, default=0), max(moments, default=0)
        if offset is not None and started is not None and 0 <= zero - (started - offset) <= LONGEST_NS:
            zero = started - offset
        if recording.ended_ns is not None and 0 <= recording.ended_ns - end <= LONGEST_NS:
            end = recording.ended_ns
        return cls(recording, zero, min(end, zero + 2 * LONGEST_NS), None if offset is None else zero + offset)

    def run(self) -> dict[str, Any]:
        # The framework whose hooks counted the steps; those of Keras do not state its backend.
        sources = {phase.name.partition("_")[0] for phase in self.recording.phases if phase.kind == "step"}
        return {
            "format": STACKS_FORMAT,
            "producer": "traceviz collect",
            "framework": next((_FRAMEWORKS[source] for source in sorted(sources) if source in _FRAMEWORKS), None),
            "t0_unix_ns": self.t0_unix_ns,
            "span_ns": self.end_ns - self.zero_ns,
            "reader": STACKS_FORMAT,
        }

    def threads(self, notes: Notes) -> pa.Table:
        """Return table ``threads`` and Python's ids; threads without a known number have negative ones."""
        listed = list(self.recording.threads.values())
        rows = [
            {
                "thread_id": at,
                "process_id": 0,
                # The system's number of the thread, else Python's.
                "tid": next((number for number in (thread.tid, thread.ident) if number is not None), -1 - at),
                "name": thread.name,
            }
            for at, thread in enumerate(listed)
        ]
        idents: Any = pa.array([thread.ident for thread in listed], pa.int64())
        return rows_to_table("threads", rows, notes).append_column(IDENT, idents)

    def stacks(self, numbers: Values) -> pa.Table:
        """Return table ``stacks``; ``numbers`` are those of the stacks in table ``stack_frames``."""
        samples = self.recording.samples
        state = samples["state"].combine_chunks()
        known = pc.is_in(state, value_set=pa.array(schema.THREAD_STATES))
        columns = {
            "start_ns": pc.subtract(samples["start_ns"], self.zero_ns),
            "dur_ns": samples["dur_ns"],
            "process_id": pa.array(np.zeros(samples.num_rows, np.int32)),
            "thread_id": samples["thread_id"].cast(pa.int32()),
            "stack_id": pa.array(numbers[samples["stack_id"].to_numpy()]),
            "samples": samples["samples"],
            "cpu_ns": samples["cpu_ns"],
            "state": pc.if_else(known, state, pa.scalar(None, pa.string())).dictionary_encode(),
        }
        declared = schema.table("stacks").arrow
        return pa.table([columns[field.name].cast(field.type) for field in declared], schema=declared)

    def phases(self, notes: Notes) -> pa.Table:
        """Return table ``phases``, with the process as a whole first."""
        threads = {thread.tid: at for at, thread in enumerate(self.recording.threads.values())}
        whole: dict[str, Any] = {"start_ns": 0, "dur_ns": self.end_ns - self.zero_ns, "kind": "program"}
        whole["name"] = self.recording.role
        unsampled = self._unsampled()
        rows: list[dict[str, Any]] = [
            {
                "start_ns": phase.start_ns - self.zero_ns,
                "dur_ns": phase.dur_ns,
                "thread_id": None if phase.tid is None else threads.get(phase.tid),
                "kind": phase.kind,
                "name": phase.name,
                "number": phase.number,
            }
            for phase in self.recording.phases
            if phase.kind in schema.PHASES and phase.kind not in {"program", "unsampled"}
        ]
        return rows_to_table("phases", [{"process_id": 0, **row} for row in [whole, *unsampled, *rows]], notes)

    def _unsampled(self) -> list[dict[str, Any]]:
        """Return the last part of the process, which has no samples; empty if sampling ended normally.

        If the file lacks its end, this part starts at the last known moment: the end of the process is unknown.
        """
        recording = self.recording
        is_over = recording.ended_ns is not None or recording.role != _PROGRAM  # workers are ended by signals
        if recording.stopped is None and is_over:
            return []
        stop = self.end_ns if recording.stopped is None else recording.stopped.at_ns
        start = min(max(stop, self.zero_ns), self.end_ns) - self.zero_ns
        dur_ns = self.end_ns - self.zero_ns - start
        return [{"start_ns": start, "dur_ns": dur_ns, "kind": "unsampled", "name": "stacks"}]

    def metrics(self, notes: Notes) -> pa.Table:
        """Return table ``metrics``."""
        rows = [
            {
                "start_ns": metric.at_ns - self.zero_ns,
                "process_id": 0,
                "name": metric.name,
                "value": metric.value,
                "step": metric.step,
                "epoch": metric.epoch,
                "source": metric.source if metric.source in schema.METRIC_SOURCES else _UNKNOWN_SOURCE,
            }
            for metric in self.recording.metrics
        ]
        return rows_to_table("metrics", rows, notes)

    def settings(self) -> pa.Table:
        """Return facts about the process, and the cost of sampling."""
        about, cost = self.recording.about, self.recording.cost.get("cpu_ns")
        known: dict[str, Any] = {"process.role": self.recording.role, "process.parent_pid": about.ppid}
        known |= {"process.batch": about.batch or None, "process.gradients": about.gradients}
        known["process.parameter_bits"] = about.parameter_bits
        wall_ns = self.end_ns - self.zero_ns
        if isinstance(cost, int | float) and 0 <= cost < LONGEST_NS and wall_ns > 0:
            known["stacks.cost"] = f"{cost / wall_ns:.5f}"
        if 0 < about.rate_hz < LONGEST_NS:
            known["stacks.rate_hz"] = f"{about.rate_hz:g}"
        rows = [{"process_id": 0, "key": key, "value": str(value)} for key, value in known.items() if value is not None]
        return rows_to_table("settings", rows)


def _moments(recording: StackRecording) -> Iterator[int]:
    """Yield first start and last end of the samples, starts and ends of the phases, and times of the metrics."""
    yield from (metric.at_ns for metric in recording.metrics)
    starts, durations = (recording.samples[name].to_numpy() for name in ("start_ns", "dur_ns"))
    if starts.size:
        yield int(starts.min())
        yield int((starts + np.where((durations < 0) | (durations > LONGEST_NS), 0, durations)).max())
    for phase in recording.phases:
        yield phase.start_ns
        yield phase.start_ns + (phase.dur_ns if phase.dur_ns is not None and 0 < phase.dur_ns <= LONGEST_NS else 0)


def _drop_strays(recording: StackRecording, notes: Notes) -> None:
    """Leave out samples, phases and metrics that are too far from the others for one capture."""
    starts = recording.samples["start_ns"].to_numpy()
    phases = np.array([phase.start_ns for phase in recording.phases], np.int64)
    metrics = np.array([metric.at_ns for metric in recording.metrics], np.int64)
    window = window_of(np.concatenate([starts, phases, metrics]))
    if window is None:
        return
    inside, kept, stated = window.has(starts), window.has(phases), window.has(metrics)
    note_times(notes, "stacks", starts[~inside])
    note_times(notes, "phases", phases[~kept])
    note_times(notes, "metrics", metrics[~stated])
    recording.samples = recording.samples.filter(pa.array(inside))
    recording.phases = [phase for phase, stays in zip(recording.phases, kept.tolist(), strict=True) if stays]
    recording.metrics = [metric for metric, stays in zip(recording.metrics, stated.tolist(), strict=True) if stays]


_FRAMEWORKS = {"jax": "JAX", "mxnet": "MXNet", "paddle": "PaddlePaddle", "tf": "TensorFlow", "torch": "PyTorch"}
"""Frameworks by the prefix of the sources of steps."""


def _offset(clocks: list[ClockLine]) -> int | None:
    """Return the wall-clock time of the file's zero, by the clocks before the wall clock was set; ``None``: unknown."""
    offsets = [clock.unix_ns - clock.at_ns for clock in clocks]
    before = [offset for offset in offsets if abs(offset - offsets[0]) < CLOCK_STEP_NS]
    return sorted(before)[len(before) // 2] if before else None


def _note(recording: StackRecording, notes: Notes) -> None:
    message = "Lines of the recorded stacks cannot be read and were left out: they were cut off, or are damaged."
    notes.add("stacks-unreadable", "warning", message, recording.left_out["lines"])
    message = "Samples of threads or stacks that the recording does not describe were left out."
    notes.add("stacks-unknown", "warning", message, recording.left_out["samples"])
    if recording.stopped is None and recording.ended_ns is None and recording.role == _PROGRAM:
        message = "The program was killed, or still runs: samples of stacks of its last second may be missing."
        notes.add("stacks-not-ended", "info", message)
    offsets = [clock.unix_ns - clock.at_ns for clock in recording.clocks]
    step_ns = max((offset - offsets[0] for offset in offsets), key=abs, default=0)
    if abs(step_ns) >= CLOCK_STEP_NS:
        message = f"The clock of the machine was set by {step_ns / 1e9:+.1f} s meanwhile; stacks keep the old time."
        notes.add("clock-set", "warning", message)
