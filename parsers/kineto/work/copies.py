"""Direction and memories of copies and fills, from their names and arguments.

=======================  ====================================  ==================================================
profiler                 name                                  arguments
=======================  ====================================  ==================================================
Kineto on CUDA           ``Memcpy HtoD (Pageable -> Device)``  none
Kineto on ROCm           ``Memcpy HtoD (Host -> Device)``      ``kind``: ``HtoD``
Kineto on XPU            ``Memcpy M2D (Memory -> Device)``     none
Kineto on AIU            ``Memcpy (HtoD)``                     none with more detail
PyTorch's CUPTI monitor  ``Memcpy``                            ``copy kind``: ``HtoD``, ``src kind``: ``pageable``,
                                                               ``dst kind``: ``device``; numbers of CUPTI for
                                                               kinds without a word
=======================  ====================================  ==================================================
"""

from __future__ import annotations

import re

from traceviz.parsers.shared.cupti import COPY_KIND, MEMORY_KIND
from traceviz.parsers.shared.events.launch_details import memory_kinds

_LONGEST = 1_000
"""Maximum number of characters of a name that are searched: a bound on time."""

_HOST, _DEVICE, _PEER, _SHARED = "h", "d", "p", "s"
_PLACES = {
    **dict.fromkeys(("h", "host", "m", "memory", "pageable", "pinned"), _HOST),
    **dict.fromkeys(("d", "device", "device_static", "a", "array"), _DEVICE),  # arrays count as device memory
    **dict.fromkeys(("p", "peer"), _PEER),
    **dict.fromkeys(("s", "shared"), _SHARED),
}
"""Place of memory by a letter or word. Memory of both (managed, shared) shows no direction."""

_WORDS = {"memory": "pageable", "shared": "managed"}
"""Kinds of memory in Intel's profiler: not allocated by a runtime, and shared by host and devices."""

_END = "host|device|array|memory|shared|peer|[hdampsHDAMPS]"
_BETWEEN = re.compile(rf"(?:(?<![a-z])|co?py)(?P<source>{_END})_?(?:2|to)_?(?P<target>{_END})", re.IGNORECASE)
_SIDES = re.compile(r"\((?P<source>[^()]+?) *-> *(?P<target>[^()]+?)\)")
_FILLED = re.compile(r"\((?:[^()]*->)?(?P<memory>[^()]+)\)")

_KINDS = {
    (_HOST, _DEVICE): "h2d",
    (_DEVICE, _HOST): "d2h",
    (_DEVICE, _DEVICE): "d2d",
    (_HOST, _HOST): "h2h",
    (_PEER, _PEER): "p2p",
    (_PEER, _DEVICE): "p2p",
    (_DEVICE, _PEER): "p2p",
}


def describe_copy(name: str, kind: str = "", source: str = "", target: str = "") -> tuple[str, str, str]:
    """Return ``kind``, ``src_memory`` and ``dst_memory`` of table ``memcpy`` for a copy.

    The name decides the direction, else the argument, else the two memories. Arguments decide the memories, else the
    name, else the direction.

    Args:
        name: Name of the event.
        kind: Its argument for the direction; empty if it has none.
        source: Its argument for the kind of memory that is read; empty if it has none.
        target: Likewise for the memory that is written.
    """
    sides = _SIDES.search(name[:_LONGEST])
    stated = (_memory(source) or _memory(sides["source"] if sides else ""),
              _memory(target) or _memory(sides["target"] if sides else ""))  # fmt: skip
    ends = (_PLACES.get(stated[0], ""), _PLACES.get(stated[1], ""))
    is_number = kind.isdecimal() and len(kind) <= len(str(max(COPY_KIND)))
    by_number = COPY_KIND.get(int(kind), "") if is_number else ""
    direction = _direction(name) or by_number or _direction(kind) or _KINDS.get(ends, "unknown")
    memories = dict(zip(("kind_src", "kind_dst"), (_WORDS.get(word, word) for word in stated), strict=True))
    return direction, *memory_kinds(direction, memories)


def memory_of_fill(name: str, memory: str = "") -> str:
    """Return ``memset.memory`` for a fill: of its argument, else of its name, which is silent for plain memory."""
    match = _FILLED.search(name[:_LONGEST])
    word = _memory(memory) or (_memory(match["memory"]) if match else "device")
    word = _WORDS.get(word, word)
    return word if word in MEMORY_KIND.values() else "unknown"


def _direction(text: str) -> str:
    """Return the direction in a text such as ``Memcpy HtoD`` or ``DEVICE_TO_HOST``; empty if there is none."""
    match = _BETWEEN.search(text[:_LONGEST])
    return _KINDS.get((_PLACES[match["source"].lower()], _PLACES[match["target"].lower()]), "") if match else ""


def _memory(text: str) -> str:
    """Return the kind of memory as the contract names it, if it does; numbers are those of CUPTI."""
    word = text.strip().lower().replace(" ", "_")
    number = int(word) if word.isdecimal() and len(word) == 1 else None
    return MEMORY_KIND.get(number, "") if number is not None else "" if word == "unknown" else word
