"""nvprof's measurements of the machine (``--system-profiling on``): clocks, temperature, power and fans of the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.parsers.nvprof import constants
from traceviz.parsers.nvprof.identity import Identity
from traceviz.parsers.nvprof.raw import NvprofTables
from traceviz.parsers.shared.notes import Notes
from traceviz.trace.plausible import LONGEST_NS, elapsed, note_times
from traceviz.trace.rows_to_table import rows_to_table

_TABLE = constants.PREFIX + "ENVIRONMENT"


@dataclass(frozen=True, slots=True)
class _Reading:
    """One 4-byte number in the data of a record: its offset, its metric, and the factor to its unit."""

    offset: int
    metric: str
    unit: str
    factor: float = 1.0


_READINGS = {
    constants.SPEED: (_Reading(0, "SM clock", "MHz"), _Reading(4, "memory clock", "MHz")),
    constants.TEMPERATURE: (_Reading(0, "GPU temperature", "°C"),),
    constants.POWER: (_Reading(0, "GPU power", "W", 0.001), _Reading(4, "GPU power limit", "W", 0.001)),
    constants.COOLING: (_Reading(0, "fan speed", "%"),),
}
"""Members of the union ``data`` of ``CUpti_ActivityEnvironment`` by kind."""


def has_samples(raw: NvprofTables) -> bool:
    """Return whether the capture measured the machine."""
    return bool(_rows(raw))


def read_samples(raw: NvprofTables, identity: Identity, zero_ns: int, notes: Notes) -> pa.Table:
    """Return table ``samples``, with a few rows per second and device."""
    devices = {number: index for index, number in enumerate(identity.devices.to_pylist())}
    samples = (
        {
            "start_ns": row["timestamp"] - zero_ns,
            "device_id": devices.get(row["deviceId"]),
            "metric": reading.metric,
            "unit": reading.unit,
            "value": value * reading.factor,
        }
        for row in _plausible(_rows(raw), zero_ns, notes)
        for reading, value in _values(row)
    )
    return rows_to_table("samples", samples, notes)


def _plausible(rows: list[dict[str, Any]], zero_ns: int, notes: Notes) -> list[dict[str, Any]]:
    """Return the readings from the time of the events; the file may state any time."""
    times = np.array([row["timestamp"] for row in rows], np.int64)
    inside = np.abs(elapsed(np.full(times.size, zero_ns), times)) <= LONGEST_NS
    note_times(notes, "samples", times[~inside])
    return [row for row, is_inside in zip(rows, inside.tolist(), strict=True) if is_inside]


def _rows(raw: NvprofTables) -> list[dict[str, Any]]:
    rows = raw.small(_TABLE, ("deviceId", "timestamp", "environmentKind"), blobs=("data",))
    return [row for row in rows if row["timestamp"] and row["environmentKind"] in _READINGS]


def _values(row: dict[str, Any]) -> Iterator[tuple[_Reading, int]]:
    data = row["data"] or b""
    for reading in _READINGS[row["environmentKind"]]:
        stored = data[reading.offset : reading.offset + 4]
        if len(stored) == 4:
            yield reading, int.from_bytes(stored, "little")
