"""Captures: a format and a flaw, and the files that a profiler would leave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from benchmarks.diagnosis.flaws import Flaw, apply_flaw
from benchmarks.diagnosis.knobs import Format
from benchmarks.diagnosis.record import Record
from benchmarks.diagnosis.worlds import World
from benchmarks.diagnosis.writers import tpu
from benchmarks.diagnosis.writers.file_flaws import cut_end, merge_ranks
from benchmarks.diagnosis.writers.kineto import Form, write_kineto
from benchmarks.diagnosis.writers.kineto_device import BackEnd
from benchmarks.diagnosis.writers.nsys import write_nsys
from benchmarks.diagnosis.writers.nvprof import write_nvprof
from benchmarks.diagnosis.writers.rocm import as_rocm
from benchmarks.diagnosis.writers.run_folder import write_run
from benchmarks.diagnosis.writers.trace_json import write_trace_json
from benchmarks.diagnosis.writers.xplane import write_xplane

KINETO = {
    Format.KINETO: Form(),
    Format.KINETO_STACKS: Form(stacks=True),
    Format.KINETO_ROCM: Form(back_end=BackEnd.ROCTRACER),
    Format.CUPTI_MONITOR: Form(back_end=BackEnd.MONITOR),
}
"""Formats of the PyTorch profiler. Its files can be read up to a cut, and scripts merge those of ranks."""
_WITHOUT_CALLS = frozenset({Format.NVPROF, Format.NSYS, Format.XPLANE, Format.TRACE_JSON})
"""Formats of profilers that can record devices alone."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A format, a flaw, and the age of the profiler.

    Age 0 is the oldest of three schemas of nsys. For PyTorch it is the way to record: 2 is plain, 1 has shapes, and 0
    has shapes and is packed with gzip. A run folder of age 0 has packed recordings. Other formats have one age.
    """

    format: Format
    flaw: Flaw = Flaw.NONE
    age: int = 2

    def __str__(self) -> str:
        return self.format if self.flaw is Flaw.NONE else f"{self.format} ({self.flaw})"


def formats_of(world: World) -> list[Format]:
    """Return the formats that a program of this kind can be recorded in."""
    # A TPU of this simulation runs one pass as one module, and takes its batch from the infeed queue.
    is_plain = world.stages == world.tensor == world.passes == 1 and not world.graphs and not world.prefetches
    on_tpu = is_plain and not world.serves and world.strengths.keys() <= tpu.CAUSES
    return [format_ for format_ in Format if on_tpu or format_ is not Format.XPLANE_TPU]


def flaws_of(format_: Format, world: World) -> list[Flaw]:
    """Return the flaws that captures of a format can have, and that change something of this world."""
    left_out = {Flaw.NONE}
    if world.serves:  # it has no steps, no backward pass and no modules
        left_out |= {Flaw.NO_STEPS, Flaw.ODD_NAMES, Flaw.SEVERAL_LAUNCHERS, Flaw.REPEATED_LAYERS}
    if format_ is Format.XPLANE_TPU:  # its host launches modules only; no message on lost events is known
        left_out |= {Flaw.SEVERAL_LAUNCHERS, Flaw.LOST_EVENTS}
    if format_ is Format.RUN:  # its hooks name the steps
        left_out |= {Flaw.ODD_NAMES}
    if format_ not in _WITHOUT_CALLS:
        left_out |= {Flaw.NO_CALLS}
    if format_ not in KINETO:
        left_out |= {Flaw.CUT_FILE, Flaw.MERGED_RANKS}
    if world.ranks == 1:
        left_out |= {Flaw.MERGED_RANKS, Flaw.RANK_WINDOWS}
    return [flaw for flaw in Flaw if flaw not in left_out]


def write_capture(record: Record, capture: Capture, seed: int, folder: Path) -> list[Path]:
    """Write the files of a capture into a folder and return those to read."""
    if capture.format is Format.KINETO_ROCM:
        record = as_rocm(record)
    elif capture.format is Format.XPLANE_TPU:
        record = tpu.as_tpu(record)
    paths = _write(apply_flaw(record, capture.flaw, seed), capture, folder)
    random = Random(f"{seed}/{capture.flaw}")
    if capture.flaw is Flaw.CUT_FILE:
        cut_end(paths, random)
    if capture.flaw is Flaw.MERGED_RANKS:
        return merge_ranks(paths, random)
    return paths


def _write(record: Record, capture: Capture, folder: Path) -> list[Path]:
    if capture.format in KINETO:
        form = replace(KINETO[capture.format], shapes=capture.age < 2, packed=capture.age == 0)
        return write_kineto(record, folder, form)
    match capture.format:
        case Format.NSYS:
            return write_nsys(record, folder, age=capture.age)
        case Format.XPLANE:
            return write_xplane(record, folder)
        case Format.XPLANE_TPU:
            return tpu.write_tpu(record, folder)
        case Format.TRACE_JSON:
            return write_trace_json(record, folder)
        case Format.NVPROF:
            return write_nvprof(record, folder)
    return write_run(record, folder, packed=capture.age == 0)
