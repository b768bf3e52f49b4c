"""Recognition of captures of the profilers of TensorFlow and JAX: XPlane files, and their trace JSON."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from traceviz.parsers.base import HEAD_BYTES, Match
from traceviz.parsers.shared.json.stream import head_text
from traceviz.parsers.shared.log_folders import find_runs
from traceviz.parsers.xplane.decode.wire import BYTES, BrokenMessageError, CutShortError, UnreadableError, read_fields

TRACE_JSON_SUFFIXES = (".trace.json.gz", ".trace.json")
GZIP_MAGIC = b"\x1f\x8b"
_PLANE_NAME = re.compile(rb"[\x20-\x7e]+")
_PLANE_FIELDS = {1: 0, 2: BYTES, 3: BYTES, 4: BYTES, 5: BYTES, 6: BYTES}
"""Wire type of each field of a plane."""

_LONGEST_START = 15
"""Bytes of a tag and a length: five and ten."""
_PLANE_OF_JSON = re.compile(
    rb'"name"\s*:\s*"(?:[^"/\s]+ )?/(?:host|device):[A-Z][^"]*'
    rb'(?<! Compute)(?<! Tensors)"'  # lanes of TensorFlow 1, which the Chrome-format reader reads
)
_FOREIGN = re.compile(rb'"(?:schemaVersion|deviceProperties|cat)"\s*:')


def is_space(head: bytes) -> bool:
    """Return whether ``head`` is the start of an XSpace: a plane with a readable name, and only fields of planes.

    Planes come first in a file, and the name comes first in a plane, after its number.
    """
    try:
        for number, wire, begin, end in read_fields(memoryview(head), 0, len(head)):
            return number == 1 and wire == BYTES and _is_plane(head[begin:end])
    except CutShortError as error:  # of a long plane, the head holds the start
        return (error.number, error.wire) == (1, BYTES) and _is_plane(head[error.begin :])
    except BrokenMessageError:
        pass
    return False


def _is_plane(head: bytes) -> bool:
    named = False
    try:
        for number, wire, begin, end in read_fields(memoryview(head), 0, len(head)):
            if _PLANE_FIELDS.get(number) != wire:
                return False
            named = named or (number == 2 and bool(_PLANE_NAME.fullmatch(head[begin:end])))
    except CutShortError:
        pass
    except UnreadableError as error:  # if a head ends within a tag or a length, few bytes are left
        return named and error.unread < _LONGEST_START
    return named


def inflate_head(head: bytes) -> bytes:
    """Return the start of the decompressed data; empty if it is empty or broken."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""


def is_trace_json(head: bytes) -> bool:
    """Return whether ``head`` is the start of the profiler's trace JSON; PyTorch's has other members and categories."""
    text = head_text(head)
    known = text.startswith(b"{") and b'"traceEvents"' in text and _PLANE_OF_JSON.search(text)
    return bool(known and not _FOREIGN.search(text))


def sniff_trace_json_folder(path: Path) -> Match:
    """Return ``YES`` for log folders whose runs have only this file: the XPlane file holds more.

    PyTorch's profiler gives its files the same suffix: the newest run must hold one of ours.
    """
    try:
        if not path.is_dir() or (path / "manifest.json").is_file() or find_runs(path):
            return Match.NO
        runs = find_runs(path, TRACE_JSON_SUFFIXES)
        for file in runs[-1].files if runs else ():
            with file.open("rb") as opened:
                if is_trace_json(opened.read(HEAD_BYTES)):
                    return Match.YES
    except (OSError, ValueError):
        pass
    return Match.NO
