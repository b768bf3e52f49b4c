"""Trace JSON of TensorFlow's and JAX's profiler, decoded event by event; cut files are read up to the cut.

The profiler writes ``{"displayTimeUnit":"ns","metadata":{...},"traceEvents":[{...},...,{}]}``. JSON has no columns, so
every event is a Python object once; later code works on columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from traceviz.core.errors import DamagedTraceError
from traceviz.core.process.memory import Allowance
from traceviz.parsers.shared.json.stream import TextStream
from traceviz.parsers.shared.json.window import check_length

_BLOCK_BYTES = 8 * 2**20

_BYTES_PER_OBJECT = 100
"""Minimum bytes of an event, or its arguments, as a Python object."""

_NUMBER = msgspec.Raw(b"0")
_EVENTS_OPEN = b'"traceEvents"'
_CUTS_TRIED = 64
_AGAIN = "Copy the file again, or record again."


_Id = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class TraceEvent(msgspec.Struct, gc=False):
    """One element of ``traceEvents``; the empty one that ends the list has no phase.

    ``ts`` and ``dur`` stay text: as floats they would lose picoseconds.
    """

    ph: str = ""
    name: str = ""
    pid: _Id = 0
    tid: _Id = 0
    ts: msgspec.Raw = _NUMBER
    dur: msgspec.Raw = _NUMBER
    args: dict[str, Any] = {}


class _Document(msgspec.Struct, rename={"events": "traceEvents"}):
    events: list[TraceEvent]


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """Events of a file.

    Args:
        events: All of them, in file order, names of processes and threads (phase ``M``) included.
        lost: Bytes of JSON at the end of the file that could not be read; 0 if it is complete.
        cut: True if the file ends before its format does.
    """

    events: list[TraceEvent]
    lost: int = 0
    cut: bool = False


def decode(path: Path, max_size: int | None = None, allowance: Allowance | None = None) -> Decoded:
    """Decode the events of the file ``path``, gzip or not.

    Args:
        path: The file.
        max_size: The longest text to read, in bytes; ``None`` for the limits of
            :mod:`~traceviz.parsers.shared.json.stream`.
        allowance: Memory that may be used; ``None`` for all free memory.

    Raises:
        DamagedTraceError: the file cannot be opened, no event of it can be read, or its text is too long.
        OutOfMemoryError: its events do not fit in the allowed memory.
    """
    stream = TextStream(path, max_size)
    text = b"".join(_with_events(stream.blocks(_BLOCK_BYTES), path, allowance or Allowance()))
    try:
        return Decoded(_events(text), cut=bool(stream.damage))
    except msgspec.ValidationError as error:
        raise DamagedTraceError(f"{path} holds an event that no profiler writes.", f"{error}.", _AGAIN) from error
    except RecursionError as error:
        raise DamagedTraceError(f"{path} holds JSON that lies too deep in itself.", fix=_AGAIN) from error
    except msgspec.DecodeError as error:
        decoded = _up_to_the_cut(text, error)
        if decoded is None:
            raise DamagedTraceError(f"{path} holds no event that can be read.", f"{error}.", _AGAIN) from error
        return decoded


def _with_events(blocks: Iterable[bytes], path: Path, allowance: Allowance) -> Iterator[bytes]:
    """Yield the same blocks while objects end in them and all fit: others are rejected before they use memory."""
    without = needed = 0
    for block in blocks:
        last = block.rfind(b"}")
        without = without + len(block) if last < 0 else len(block) - last
        check_length(without, path)
        needed += len(block) + _BYTES_PER_OBJECT * block.count(b"{")
        allowance.check(needed, path.name)
        yield block


def _events(text: bytes) -> list[TraceEvent]:
    """Return the events of ``text``. Names of programs need not be UTF-8: invalid bytes are replaced."""
    try:
        return _DECODER.decode(text).events
    except UnicodeDecodeError:
        return _DECODER.decode(text.decode("utf-8", "replace").encode()).events


def _up_to_the_cut(text: bytes, error: msgspec.DecodeError) -> Decoded | None:
    """Return the events before the place where the JSON breaks off; ``None`` if there is none.

    The last complete event ends with a brace. A brace may also end its arguments or be part of a name. The last few
    braces are tried, and the first that leaves valid JSON is used.
    """
    end = _place_of(error, len(text))
    for _ in range(_CUTS_TRIED):
        end = text.rfind(b"}", 0, end)
        if end < text.find(_EVENTS_OPEN):
            return None
        try:
            return Decoded(_events(text[: end + 1] + b"]}"), len(text) - end - 1, cut=True)
        except RecursionError:
            return None
        except msgspec.DecodeError as another:
            end = min(end, _place_of(another, end))
    return None


def _place_of(error: msgspec.DecodeError, otherwise: int) -> int:
    """Return the place of invalid JSON: the decoder's message states it, unless the text just ends."""
    match = _PLACE.search(str(error))
    return int(match[1]) if match else otherwise


_PLACE = re.compile(r"\(byte (\d+)\)$")
_DECODER = msgspec.json.Decoder(_Document)


def text_of(value: Any) -> str:
    """Return an argument of an event as text; profilers write texts, and other tools any values.

    Raises:
        DamagedTraceError: it is a list or an object that is nested too deep.
    """
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except RecursionError as error:
        raise DamagedTraceError("An argument of an event is JSON that lies too deep in itself.", fix=_AGAIN) from error
