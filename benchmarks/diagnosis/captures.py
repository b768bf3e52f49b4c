"""Captures: a format and a flaw, and the files that a profiler would leave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.diagnosis.flaws import Flaw, apply_flaw
from benchmarks.diagnosis.knobs import Format
from benchmarks.diagnosis.record import Record
from benchmarks.diagnosis.writers.kineto import write_kineto
from benchmarks.diagnosis.writers.nsys import write_nsys
from benchmarks.diagnosis.writers.nvprof import write_nvprof
from benchmarks.diagnosis.writers.trace_json import write_trace_json
from benchmarks.diagnosis.writers.xplane import write_xplane


@dataclass(frozen=True, slots=True)
class Capture:
    """A format, a flaw, and the age of the profiler (0 is the oldest of three; only nsys has them)."""

    format: Format
    flaw: Flaw = Flaw.NONE
    age: int = 2

    def __str__(self) -> str:
        return self.format if self.flaw is Flaw.NONE else f"{self.format} ({self.flaw})"


def write_capture(record: Record, capture: Capture, seed: int, folder: Path) -> list[Path]:
    """Write the files of a capture into a folder and return those to read."""
    record = apply_flaw(record, capture.flaw, seed)
    match capture.format:
        case Format.NSYS:
            return write_nsys(record, folder, age=capture.age)
        case Format.KINETO:
            return write_kineto(record, folder, stacks=False)
        case Format.KINETO_STACKS:
            return write_kineto(record, folder, stacks=True)
        case Format.XPLANE:
            return write_xplane(record, folder)
        case Format.TRACE_JSON:
            return write_trace_json(record, folder)
        case Format.NVPROF:
            return write_nvprof(record, folder)
