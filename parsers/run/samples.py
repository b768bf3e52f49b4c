"""Output of the resource sampler of ``traceviz collect``: a folder of Parquet parts and a description.

Each part is complete, so the parts of a killed sampler are read as usual; a note reports the kill.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.run.layout import SAMPLES_DESCRIPTION, SAMPLES_FORMAT, SAMPLES_KIND
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.plausible import note_times, window_of
from traceviz.trace.rows_to_table import rows_to_table
from traceviz.untrusted.json_documents import read_document
from traceviz.untrusted.parquet import DAMAGE, read_parquet

VERSION = 1
PARTS = "part-*.parquet"

_WORD = pa.dictionary(pa.int32(), pa.string())
PART_SCHEMA = pa.schema(
    [
        pa.field("unix_ns", pa.int64(), nullable=False),
        pa.field("pid", pa.int64()),
        pa.field("gpu", pa.int16()),
        pa.field("metric", _WORD, nullable=False),
        pa.field("unit", _WORD, nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
"""Columns of a part: one row is one reading, of a process, a GPU, or the machine if both are null."""

CLOCK_STEP_NS = 100_000_000
"""Minimum change of the wall clock during sampling for a note."""
MISSED_SHARE = 0.05
"""Minimum share of missed samples for a note."""
_LARGEST = 2**62
"""Upper limit of a sampler's counts, times and rates."""
THINNED_SHARE = 0.25
"""Minimum share of readings of the program that the sampler skipped, to stay within its limits, for a note."""
PROGRAM_CPU = "program CPU"
"""The metric that is sampled as often as the limits allow."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """A folder of samples as read.

    Args:
        description: The sampler's own description.
        samples: All parts, in order of time.
        unreadable: Names of parts that could not be read.
        strays: Times of samples left out as too far from the others for one capture.
    """

    description: dict[str, Any]
    samples: pa.Table
    unreadable: tuple[str, ...]
    strays: Array

    @property
    def t0_unix_ns(self) -> int:
        """Time of the first sample; without samples, of the sampler's start."""
        first = pc.min(self.samples["unix_ns"]).as_py()
        return int(first) if first is not None else _number(self.description, "began_unix_ns")

    @property
    def span_ns(self) -> int:
        """Time from the first sample to the last."""
        last = pc.max(self.samples["unix_ns"]).as_py()
        return int(last) - self.t0_unix_ns if last is not None else 0


def read_samples(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a folder of samples. Their clock is the machine's wall clock, zero at the first sample."""
    sampling = _read_sampling(path)
    described = sampling.description
    unsorted = pc.unique(sampling.samples["pid"]).drop_null()
    pids = unsorted.take(pc.sort_indices(unsorted))
    listed = _rows(described, "gpus")
    gpus = [gpu for gpu in listed if type(gpu.get("ordinal")) is int and 0 <= gpu["ordinal"] < 1 << 15]  # 16-bit ids
    facts = {
        "format": SAMPLES_FORMAT,
        "producer": "traceviz collect",
        "source_schema": str(VERSION),
        "t0_unix_ns": sampling.t0_unix_ns,
        "span_ns": sampling.span_ns,
        "reader": "resources",
    }
    yield "run", rows_to_table("run", [facts])
    yield "devices", rows_to_table("devices", [_device(number, gpu) for number, gpu in enumerate(gpus)])
    stated = ((row.get("pid"), str(row.get("name") or "") or None) for row in _rows(described, "processes"))
    names = {pid: name for pid, name in stated if isinstance(pid, int)}
    rows = [{"process_id": number, "pid": pid, "name": names.get(pid)} for number, pid in enumerate(pids.to_pylist())]
    yield "processes", rows_to_table("processes", rows)
    yield "threads", schema.table("threads").empty()
    if options.wants("samples"):
        raw, ordinals = sampling.samples, pa.array([gpu["ordinal"] for gpu in gpus], pa.int16())
        columns = [
            pc.subtract(raw["unix_ns"], sampling.t0_unix_ns),
            pc.index_in(raw["gpu"], value_set=ordinals, skip_nulls=True).cast(pa.int16()),
            pc.index_in(raw["pid"], value_set=pids, skip_nulls=True).cast(pa.int32()),
            *(raw[name] for name in ("metric", "unit", "value")),
        ]
        yield "samples", pa.table(columns, schema=schema.table("samples").arrow)
    if options.wants("settings"):
        yield "settings", _settings(sampling)
    yield "notes", _notes(sampling).table()


def _read_sampling(path: Path) -> Sampling:
    """Read a folder of samples.

    Raises:
        DamagedTraceError: the description cannot be read, is of a newer version, or no part can be read.
    """
    description = _description(path / SAMPLES_DESCRIPTION)
    parts, unreadable = [], []
    for part in sorted(path.glob(PARTS)):
        try:
            # Open it once: a running sampler replaces it every two seconds.
            table = read_parquet(pa.BufferReader(part.read_bytes()))
            parts.append(table.select(PART_SCHEMA.names).cast(PART_SCHEMA))
        except (KeyError, *DAMAGE):
            unreadable.append(part.name)
    if unreadable and not parts:
        raise DamagedTraceError(f"{path / unreadable[0]} cannot be read, nor can another part.", fix="Record again.")
    samples = pa.concat_tables([PART_SCHEMA.empty_table(), *parts]).unify_dictionaries()
    samples = samples.combine_chunks()
    times = samples["unix_ns"].to_numpy()
    window = window_of(times)
    if window is None:
        return Sampling(description, samples, tuple(unreadable), times[:0])
    inside = window.has(times)
    return Sampling(description, samples.filter(pa.array(inside)), tuple(unreadable), times[~inside])


def _description(path: Path) -> dict[str, Any]:
    try:
        described = read_document(path)
    except (OSError, ValueError) as error:
        raise DamagedTraceError(f"{path} cannot be read.", str(error), "Record again.") from error
    if not isinstance(described, dict) or described.get("kind") != SAMPLES_KIND:
        raise DamagedTraceError(f"{path} does not describe samples of resources.")
    version = described.get("version")
    if version != VERSION:
        raise DamagedTraceError(
            f"{path} follows version {version} of its format; this traceviz reads {VERSION}.",
            fix="Install a newer traceviz.",
        )
    return described


def _rows(described: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a list of objects in the description; other elements are left out."""
    listed = described.get(key)
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []


def _number(described: dict[str, Any], key: str) -> int:
    """Return a number in the description; 0 if it is not a number, or is implausible."""
    value = described.get(key)
    return int(value) if isinstance(value, int | float) and abs(value) < _LARGEST else 0


def _rate(described: dict[str, Any]) -> float:
    """Return the planned samples per second."""
    value = described.get("rate_hz")
    return float(value) if isinstance(value, int | float) and 0 <= value < _LARGEST else 0.0


def _device(number: int, gpu: dict[str, Any]) -> dict[str, Any]:
    memory = gpu.get("memory_bytes")
    return {
        "device_id": number,
        "kind": "gpu",
        "ordinal": gpu["ordinal"],
        "name": str(gpu.get("name") or "") or None,
        "uuid": str(gpu.get("uuid") or "") or None,
        "memory_bytes": memory if type(memory) is int and 0 <= memory < _LARGEST else None,
    }


def _settings(sampling: Sampling) -> pa.Table:
    """Return limits of the machine, settings of the program, and the cost of sampling."""
    described = sampling.description
    settings = described.get("settings")
    known = {str(key): str(value) for key, value in settings.items()} if isinstance(settings, dict) else {}
    wall_ns = _number(described, "wall_ns")
    known["resources.rate_hz"] = f"{_rate(described):g}"
    if wall_ns > 0:
        known["resources.cost"] = f"{_number(described, 'cpu_ns') / wall_ns:.5f}"
    if _number(described, "startup_cpu_ns") > 0:
        known["resources.start_ns"] = str(_number(described, "startup_cpu_ns"))
    return rows_to_table("settings", [{"key": key, "value": value} for key, value in sorted(known.items())])


def _notes(sampling: Sampling) -> Notes:
    notes, described = Notes(), sampling.description
    if described.get("state") != "ended":
        message = "The sampler of resources was killed, or still runs: what it had not saved is missing."
        notes.add("sampler-not-ended", "warning", message)
    message = (
        f"Parts of the samples of resources cannot be read and were left out: {', '.join(sampling.unreadable[:3])}."
    )
    notes.add("samples-unreadable", "warning", message, len(sampling.unreadable))
    note_times(notes, "samples", sampling.strays)
    missed = _number(described, "missed")
    turns = _number(described, "wall_ns") / 1e9 * _rate(described)  # as planned
    if turns and missed / turns >= MISSED_SHARE:
        message = "The machine left the sampler of resources no time for some of its samples."
        notes.add("samples-missed", "info", message, missed)
    taken = pc.sum(pc.equal(sampling.samples["metric"], PROGRAM_CPU)).as_py() or 0
    thinned = round(turns) - missed - taken - 1  # a rate needs a previous reading
    if taken > 1 and thinned >= THINNED_SHARE * turns:
        message = (
            f"CPU time and memory of the program were read {taken:,} times, not {round(turns):,} times as planned: the "
            "sampler keeps below 1 % of a core."
        )
        notes.add("samples-thinned", "info", message)
    step_ns = _number(described, "clock_step_ns")
    if abs(step_ns) >= CLOCK_STEP_NS:
        message = f"The clock of the machine was set by {step_ns / 1e9:+.1f} s meanwhile; samples keep the old time."
        notes.add("clock-set", "warning", message)
    message = "Some processes do not show what they read and write; the rates leave them out."
    notes.add("io-not-permitted", "info", message, _number(described, "denied"))
    return notes
