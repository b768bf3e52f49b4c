# The compiled part of the reader of XPlane files. Columns come as bytearray in the byte order of the machine.

from typing import TypedDict

from typing_extensions import Buffer

class ScannedPlane(TypedDict):
    id: int
    name: str
    lines: list[tuple[int, str, int, int]]
    event_line: bytearray
    event_name: bytearray
    event_offset: bytearray
    event_duration: bytearray
    stat_event: bytearray
    stat_key: bytearray
    stat_kind: bytearray
    stat_value: bytearray
    names: list[str]
    display_names: list[str]
    name_stats: dict[int, dict[str, int | float | str | bytes]]
    texts: list[str]
    blobs: list[bytes]
    properties: dict[str, int | float | str | bytes]
    aggregated: int
    damage: list[tuple[int, int, int, int, int, int, int]]

def scan_plane(data: Buffer, begin: int, end: int, /) -> ScannedPlane: ...
def nest(line: Buffer, start: Buffer, end: Buffer, /) -> bytearray | None: ...
def depths(parent: Buffer, /) -> bytearray: ...
def spread(
    child_first: Buffer,
    child: Buffer,
    parent_first: Buffer,
    parent: Buffer,
    roots: Buffer,
    levels: Buffer,
    every: bool,
    /,
) -> bytearray: ...
