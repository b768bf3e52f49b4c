"""Names of tf.data stages for readers, and advice for slow ones.

A stage is an iterator of the pipeline. The trace names it by its path from the consumer to itself
(``Iterator::Root::Prefetch::ParallelMapV2::FlatMap[0]::TFRecord``). Versions, positions and implementation suffixes do
not describe its work, and are left out.
"""

from __future__ import annotations

import re
from functools import lru_cache

ITERATOR = "Iterator::"
"""Prefix of the names of iterators."""

_DECORATION = r"\[\d+\]|V\d+$|Impl$|Dataset$"
_OUTERMOST = {"Iterator", "Root", "Model"}
_KINDS = {"MemoryCache": "Cache", "MemoryReader": "Cache", "MemoryWriter": "Cache"} | {
    "FileReader": "Cache",
    "FileWriter": "Cache",
    "FileCache": "Cache",
    "LegacyParallelInterleave": "ParallelInterleave",
    "ForeverRepeat": "Repeat",
    "FiniteRepeat": "Repeat",
    "FiniteTake": "Take",
    "FiniteSkip": "Skip",
}

DEVICE_PREFETCH = ("Prefetch", "Generator")
"""Path of the pipeline that brings batches to one device. They come from a pipeline on the host."""


@lru_cache(maxsize=1 << 12)
def stage_path(name: str) -> tuple[str, ...]:
    """Return kinds of the stages from the consumer to the iterator called ``name``; empty for the root itself."""
    parts = (_plain(part) for part in name.split("::"))
    return tuple(_KINDS.get(part, part) for part in parts if part not in _OUTERMOST)


def _plain(part: str) -> str:
    before, after = "", part
    while before != after:
        before, after = after, re.sub(_DECORATION, "", after)
    return after


def fused_from(node: str) -> tuple[str, ...]:
    """Return kinds that ``node`` (the name of a graph node) was fused from, in data order; empty for others."""
    fused = re.fullmatch(r"fused\((.*)\)", node)
    return tuple(_plain(part.split(":")[0]) for part in fused.group(1).split(",")) if fused else ()


READ = (
    "Read several files at once: Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset, "
    "num_parallel_calls=tf.data.AUTOTUNE), from a local disk."
)
CACHE = "Add .cache() after the slow part where the result fits in memory or on a local disk."
"""Advice for data that is computed again in each epoch."""
_SLICES = "Batch before mapping, so that slices are taken once per batch and not once per example."
_PYTHON = (
    "A Python generator holds the interpreter's lock and runs in the training process: read with tf.data itself, "
    "yield whole batches from NumPy arrays, or interleave several generators."
)
PYTHON_MAP = (
    "The map calls Python (py_function or numpy_function), one call at a time for all threads: use tf operations "
    "instead, or prepare the data outside of training."
)
"""Advice for a map in a program that calls back into Python."""
MAPS = frozenset({"Map", "ParallelMap", "MapAndBatch"})
"""Stages that call a function of the program."""

_BATCH = (
    "Stack fewer, larger pieces: batch before the map and vectorise it; Batch(num_parallel_calls=tf.data.AUTOTUNE)."
)

FASTER_MAP = "vectorise it (batch first, then map whole batches), or move part of it to the device"
"""Remaining advice for a map that runs in parallel."""
STILL_SLOW = f"The map is parallel already and still too slow: {FASTER_MAP}."
"""The first advice for a map that runs in parallel."""

_MORE_CORES = "Give the host more cores, or spread the pipeline over machines (tf.data service)."
_INTERLEAVE = "Read in parallel: .interleave(..., num_parallel_calls=tf.data.AUTOTUNE) instead of one source at a time."
_SHUFFLE = "The shuffle buffer is being filled: use a smaller buffer, or shuffle file names instead of examples."
_FILES = ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord", "CSV")

_ADVICE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_FILES, (READ, CACHE)),
    **dict.fromkeys(("TensorSlice", "FromTensor", "Tensor", "SparseTensorSlice", "Range"), (_SLICES, CACHE)),
    "Generator": (_PYTHON, CACHE),
    "Map": (
        "This map runs one example after the other: .map(f, num_parallel_calls=tf.data.AUTOTUNE).",
        "Vectorise it: batch first, then map whole batches; or move it to the device.",
        CACHE,
    ),
    **dict.fromkeys(("ParallelMap", "MapAndBatch", "ParallelBatch", "ParseExample"), (STILL_SLOW, CACHE, _MORE_CORES)),
    **dict.fromkeys(("Interleave", "FlatMap"), (_INTERLEAVE, CACHE)),
    "ParallelInterleave": ("Raise cycle_length and use more, smaller files; " + READ, CACHE),
    **dict.fromkeys(("Shuffle", "ShuffleAndRepeat"), (_SHUFFLE,)),
    **dict.fromkeys(("Batch", "PaddedBatch", "Unbatch"), (_BATCH, CACHE)),
    "Filter": ("Filter early, before the expensive stages, or filter once and .cache() the result.",),
    "Prefetch": ("The stages before this prefetch cannot keep up: make them parallel, or cache their result.",),
    "Cache": ("The cache is read or filled one example at a time: batch before .cache().",),
    "DataService": ("The tf.data service cannot keep up: add workers, or look at the pipeline of the workers.",),
}
"""Advice by kind of stage, the most promising first."""

READY_ADVICE = (
    "Batches were ready when they were asked for: what is left is the cost of each call. Larger batches need fewer "
    "calls; tf.data.experimental.prefetch_to_device hides the copy."
)
"""Advice for a prefetch whose buffer was rarely empty."""

_GENERAL = ("TensorFlow: let the input run ahead by .prefetch(tf.data.AUTOTUNE) at the end of the pipeline.",)

_HAND_OVER = ("Copy the batch ahead of time: tf.data.experimental.prefetch_to_device, or a smaller type (uint8).",)


def stage_advice(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return advice for the stage at ``path``, the most promising first."""
    if path == DEVICE_PREFETCH:
        return ("The pipeline on the host delivers batches too slowly for this device: look at its stages.", *_GENERAL)
    return _ADVICE.get(path[-1] if path else "", _GENERAL)


def take_advice(name: str) -> tuple[str, ...]:
    """Return advice for time in the operation ``name`` that takes a batch, outside of any stage."""
    return _HAND_OVER if re.search(r":_(Send|Recv)$", name) else _GENERAL


def take_label(name: str) -> str:
    """Return the name of the operation ``name`` that takes a batch, for readers."""
    if re.search(r":_(Send|Recv)$", name):
        return "handing the batch over"
    place, call, function = name.removeprefix("$").partition(" ") if name.startswith("$") else name.partition("): ")
    if call and ".py" in place:  # a Python call: data.py(12): load_batch
        return f"{function} ({place.rpartition('/')[2].replace('(', ':')})"
    return "IteratorGetNext" if re.match(r"(?i)IteratorGetNext", name) else name
