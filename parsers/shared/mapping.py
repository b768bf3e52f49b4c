"""How columns of a profiler's own tables become columns of the contract, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer that is taken as it is. ``unset`` is the number that stands for "none"."""

    name: str
    raw: tuple[str, ...]
    unset: int | None = None
    since: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """An integer that stands for a word; ``other`` is the word for null and for numbers that are not listed."""

    name: str
    raw: tuple[str, ...]
    words: Mapping[int, str]
    other: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """A string: the text itself or, where that is null, an id in StringIds. ``strip`` is removed from its end."""

    ids: tuple[str, ...]
    text: str | None = None
    strip: str = ""


LAUNCH_SHAPE = (
    Whole("grid_x", ("gridX",)),
    Whole("grid_y", ("gridY",)),
    Whole("grid_z", ("gridZ",)),
    Whole("block_x", ("blockX",)),
    Whole("block_y", ("blockY",)),
    Whole("block_z", ("blockZ",)),
    Whole("registers_per_thread", ("registersPerThread",)),
    Whole("static_shared_bytes", ("staticSharedMemory",)),
    Whole("dynamic_shared_bytes", ("dynamicSharedMemory",)),
)
"""Columns of a kernel's launch, named after the fields of CUPTI's records."""

VERSION_SUFFIX = r"_v\d{4,5}$"
"""``cudaLaunchKernel_v7000`` is the function of CUDA 7.0; ``_v2`` in ``cuMemAlloc_v2`` is part of its name."""
