"""The sampler's output: a folder of Parquet parts, each complete, and a description.

::

    resources.json      what was sampled and how: kind, settings, processes, GPUs, cost; rewritten with every part
    part-00001.parquet  half a minute of samples; the newest is rewritten every two to five seconds

A part is written under another name and renamed, so a sampler that is killed loses only its last seconds.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from traceviz.collectors.sampler.metrics import Reading

KIND = "traceviz.resources"
VERSION = 1
DESCRIPTION = "resources.json"
PART_NS = 30_000_000_000
"""Time that one part covers."""

_WORD = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
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


class _Readings:
    """Readings as columns that grow.

    Arrow takes over their memory as it is. From Python values, it would load pandas to check whether they are of its
    types, which costs more than a minute of sampling.
    """

    def __init__(self, words: _Words) -> None:
        self._words = words
        self._unix_ns, self._pids, self._gpus = array("q"), array("q"), array("h")
        self._metrics, self._units, self._values = array("i"), array("i"), array("d")

    def __len__(self) -> int:
        return len(self._unix_ns)

    @property
    def first_ns(self) -> int:
        """Time of the first reading."""
        return self._unix_ns[0]

    @property
    def moments(self) -> int:
        """Number of times at which a reading of the host was taken."""
        times, gpus = np.frombuffer(self._unix_ns, np.int64), np.frombuffer(self._gpus, self._gpus.typecode)
        return int(np.unique(times[gpus == _NONE]).size)

    def add(self, unix_ns: int, readings: Iterable[Reading]) -> None:
        """Add readings of one time."""
        for metric, value, pid, gpu in readings:
            self._unix_ns.append(unix_ns)
            self._pids.append(_NONE if pid is None else pid)
            self._gpus.append(_NONE if gpu is None else gpu)
            self._metrics.append(self._words.code(metric.name))
            self._units.append(self._words.code(metric.unit))
            self._values.append(value)

    def batch(self) -> pa.RecordBatch:
        """Return all readings."""
        words = self._words.array()
        numbers = (self._unix_ns, self._pids, self._gpus, self._metrics, self._units, self._values)
        times, pids, gpus, metrics, units, values = (_arrow(column) for column in numbers)
        named = [pa.DictionaryArray.from_arrays(codes, words) for codes in (metrics, units)]
        return pa.RecordBatch.from_arrays([times, pids, gpus, *named, values], schema=SCHEMA)


class _Words:
    """Texts, each stored once, numbered in order of appearance."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, word: str) -> int:
        """Return the number of ``word``."""
        return self._codes.setdefault(word, len(self._codes))

    def array(self) -> pa.Array[Any]:
        """Return all texts, by number."""
        texts = [word.encode() for word in self._codes]
        offsets = array("i", accumulate(map(len, texts), initial=0))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(pa.string(), len(texts), buffers)


_NONE = -1
"""Stands for no process or no GPU until the reading is written."""
_TYPES = {"q": pa.int64(), "h": pa.int16(), "i": pa.int32(), "d": pa.float64()}


def _arrow(numbers: array[Any]) -> pa.Array[Any]:
    """Return ``numbers`` as an Arrow array, in which :data:`_NONE` is null."""
    there = np.frombuffer(numbers, numbers.typecode) != _NONE if numbers.typecode in "qh" else None
    bits = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little").tobytes())
    return pa.Array.from_buffers(_TYPES[numbers.typecode], len(numbers), [bits, pa.py_buffer(numbers)])


class PartWriter:
    """Writes readings into a folder.

    Args:
        folder: An existing folder, used only by this writer.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts = 0
        self.samples = 0
        self._words = _Words()
        self._readings = _Readings(self._words)
        self._batches: list[pa.RecordBatch] = []
        self._part_began_ns: int | None = None

    def add(self, unix_ns: int, readings: Iterable[Reading]) -> None:
        """Remember readings of one time."""
        self._readings.add(unix_ns, readings)

    def flush(self, description: Mapping[str, Any]) -> None:
        """Write the readings so far, and the description.

        Raises:
            OSError: the folder cannot be written.
        """
        if len(self._readings):
            # Add the remembered readings to the newest part, or start another one.
            if self._part_began_ns is None or self._readings.first_ns - self._part_began_ns >= PART_NS:
                self._part_began_ns, self._batches = self._readings.first_ns, []
                self.parts += 1
            self.samples += self._readings.moments
            self._batches.append(self._readings.batch())
            self._readings = _Readings(self._words)
            path = self.folder / f"part-{self.parts:05}.parquet"
            temporary = path.with_name(f".{path.name}")
            table = (
                pa.Table.from_batches(self._batches).unify_dictionaries().combine_chunks()
            )  # one page of each column
            pq.write_table(table, temporary, compression="zstd", compression_level=1, write_statistics=False)
            temporary.replace(path)
        self.describe({**description, "parts": self.parts, "samples": self.samples})

    def describe(self, description: Mapping[str, Any]) -> None:
        """Write only the description."""
        text = json.dumps({"kind": KIND, "version": VERSION, **description})  # indented, it takes five times as long
        temporary = self.folder / f".{DESCRIPTION}"
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(self.folder / DESCRIPTION)
