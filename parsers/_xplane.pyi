# The compiled part of the reader of XPlane files. Columns are buffers in the byte order of the machine: int32 for
# positions, int64 for times and keys, bytes for booleans. The last arguments of each function are outputs.

from collections.abc import Callable
from typing import TypeAlias, TypedDict

from typing_extensions import Buffer

class ScannedPlane(TypedDict):
    id: int
    name: str
    lines: list[tuple[int, str, int, int]]
    events: int
    stats: int
    event_line: Buffer
    event_name: Buffer
    event_offset: Buffer
    event_duration: Buffer
    stat_event: Buffer
    stat_key: Buffer
    stat_kind: Buffer
    stat_value: Buffer
    names: list[str]
    display_names: list[str]
    name_stats: dict[int, dict[str, int | float | str | bytes]]
    texts: list[str]
    blobs: list[bytes]
    properties: dict[str, int | float | str | bytes]
    aggregated: int
    damage: list[tuple[int, int, int, int, int, int, int]]

Spans: TypeAlias = tuple[Buffer, Buffer, Buffer, int, Buffer]

def scan_plane(data: Buffer, begin: int, end: int, new: Callable[[int], Buffer], /) -> ScannedPlane: ...
def take(values: Buffer, width: int, index: Buffer, missing: int, result: Buffer, /) -> None: ...
def mark(codes: Buffer, used: Buffer, /) -> None: ...
def invert(index: Buffer, place: Buffer, /) -> None: ...
def nanoseconds(
    start_ps: Buffer, dur_ps: Buffer, line: Buffer, base_ns: Buffer, start_ns: Buffer, dur_ns: Buffer, /
) -> None: ...
def order(start: Buffer, kept: Buffer, result: Buffer, /) -> None: ...
def sort(key: Buffer, first: Buffer, order: Buffer, /) -> None: ...
def join(left: Buffer, right: Buffer, most: int, /) -> tuple[bytearray, bytearray]: ...
def nest(events: Spans, regions: Spans, own: Buffer, /) -> bool: ...
def depths(parent: Buffer, depth: Buffer, /) -> bool: ...
def nearest(parent: Buffer, wanted: Buffer, found: Buffer, /) -> None: ...
def spread(
    child_first: Buffer,
    child: Buffer,
    parent_first: Buffer,
    parent: Buffer,
    roots: Buffer,
    levels: Buffer,
    every: bool,
    owner: Buffer,
    /,
) -> None: ...
