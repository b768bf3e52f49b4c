"""Parsers of the texts of TensorFlow's profiler on device events, such as ``regs:16 grid:1,1,1 block:1024,1,1``.

One text describes many events. These functions parse each text once; callers join the results to the events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from traceviz.parsers.shared.events.mapping import LAUNCH_SHAPE
from traceviz.trace.rows_to_table import stated_integer
from traceviz.trace.schema import MEMORY_KINDS

MOST_REGISTERS = 65_536
"""Upper limit of the registers of a thread: the register file of a whole multiprocessor."""
_INT32_MAX = 2**31 - 1

Launch = dict[str, int | None]
"""Columns of table ``kernels`` that describe a launch, by name."""

LAUNCH_COLUMNS = tuple(column.name for column in LAUNCH_SHAPE)

_END = "h|d|p|host|device|peer"
_COPY_NAME = re.compile(rf"(?:memcpy|copy)[_ ]?(?P<source>{_END})(?:2|to)(?P<target>{_END})", re.IGNORECASE)
_COPY_KINDS = {"hd": "h2d", "dh": "d2h", "dd": "d2d", "hh": "h2h", "pp": "p2p"}


def fields(text: str) -> dict[str, str]:
    """Return the ``key:value`` words of a text: ``size:4 dest:0`` is ``{"size": "4", "dest": "0"}``."""
    return dict(word.split(":", 1) for word in text.split() if ":" in word)


def launch(text: str) -> Launch:
    """Return the columns in the ``kernel_details`` of a kernel.

    Since 2021 the text reads ``regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:64,1,1 occ_pct:100``; before
    that, ``shm`` was the shared memory of both kinds together, which is given as dynamic.
    """
    stated = fields(text)
    extents = (*_triple(stated.get("grid", "")), *_triple(stated.get("block", "")))
    rest = (stated.get("regs"), stated.get("static_shared"), stated.get("dynamic_shared", stated.get("shm")))
    columns: Launch = dict(zip(LAUNCH_COLUMNS, (*extents, *map(_whole, rest)), strict=True))
    if not is_plausible(text):
        # Some ROCm builds print the halves of a pointer here: the other values of such a text are wrong, too.
        columns["registers_per_thread"] = columns["static_shared_bytes"] = None
    return columns


def is_plausible(text: str) -> bool:
    """Return whether ``kernel_details`` name a number of registers that a thread can have."""
    registers = fields(text).get("regs", "0")
    return registers.isdecimal() and int(registers) <= MOST_REGISTERS


def occupancy(text: str) -> float | None:
    """Return the theoretical occupancy (ratio) in ``kernel_details``; zero stands for "not computed"."""
    try:
        percent = float(fields(text).get("occ_pct", ""))
    except ValueError:
        return None
    return percent / 100 if 0 < percent <= 100 else None


ROCM_COPY, ROCM_FILL = "__amd_rocclr_copy", "__amd_rocclr_fill"
"""Prefixes of kernels by which ROCm's runtime copies and fills memory: not work of the program itself."""


def copy_kind(name: str, details: Mapping[str, str], ordinal: int | None) -> str:
    """Return the value of ``memcpy.kind`` from the name of the event, ``MemcpyH2D`` or ``CopyDeviceToDevice``.

    Args:
        name: Name of the event.
        details: Fields of its ``memcpy_details``.
        ordinal: Number of the device that carried it out: a copy to another device is between peers.
    """
    match = _COPY_NAME.search(name)
    kind = _COPY_KINDS.get(match["source"][0].lower() + match["target"][0].lower(), "unknown") if match else "unknown"
    target = details.get("dest", "")
    elsewhere = ordinal is not None and target.isdecimal() and int(target) != ordinal
    return "p2p" if kind == "d2d" and elsewhere else kind


def memory_kinds(kind: str, details: Mapping[str, str]) -> tuple[str, str]:
    """Return the kinds of source and target memory of a copy. Kinds that are not stated follow from the direction."""
    sides = (("unknown", "unknown"), ("device", "device"))
    ends = {"h2d": (0, 1), "d2h": (1, 0), "d2d": (1, 1), "p2p": (1, 1), "h2h": (0, 0)}.get(kind, (0, 0))
    return (
        memory_kind(details.get("kind_src"), sides[ends[0]][0]),
        memory_kind(details.get("kind_dst"), sides[ends[1]][1]),
    )


def memory_kind(stated: str | None, otherwise: str = "unknown") -> str:
    """Return one of :data:`~traceviz.trace.schema.MEMORY_KINDS`."""
    kind = (stated or "").lower()
    return kind if kind in MEMORY_KINDS and kind != "unknown" else otherwise


def size(details: Mapping[str, str]) -> int | None:
    """Return the number of bytes that ``memcpy_details``, ``Memset_details`` or ``memalloc_details`` state."""
    return _whole(details.get("size", details.get("num_bytes")), 2**63 - 1)


def framework_op(text: str) -> str | None:
    """Return the framework op in an annotation.

    For ``conv/Conv2D:Conv2D#shape=(float[1])#::#edge=a#`` it is ``conv/Conv2D:Conv2D``. Annotations are a stack,
    outermost first, joined by ``::``; each is a name, and keys and values between ``#``. The outermost that names an op
    counts. Names that end in a colon, such as ``XlaModule:``, state only a kind.
    """
    names = (part.split("#", 1)[0].strip() for part in text.split("::"))
    return next((name for name in names if name and not name.endswith(":")), None)


def _triple(text: str) -> Sequence[int | None]:
    parts = [_whole(part) for part in text.split(",")]
    return parts if len(parts) == 3 else (None, None, None)


def _whole(text: str | None, most: int = _INT32_MAX) -> int | None:
    number = stated_integer(text)
    return number if number is not None and 0 <= number <= most else None


_POOL = re.compile(r"^GPU_(?P<ordinal>\d{1,9})_", re.IGNORECASE)


def pool_device(pool: str) -> int | None:
    """Return the number of the GPU whose memory an allocator manages: 0 for ``GPU_0_bfc``."""
    match = _POOL.match(pool)
    return int(match["ordinal"]) if match else None


def pool_memory(pool: str) -> str:
    """Return the kind of an allocator's memory; ``gpu_host_bfc`` is host memory that is pinned for GPUs."""
    if _POOL.match(pool):
        return "device"
    lower = pool.lower()
    if lower.startswith(("gpu_host", "cuda_host", "xla_gpu_host", "device_host")):
        return "pinned"
    return "pageable" if lower.startswith(("cpu", "mklcpu")) else "unknown"
