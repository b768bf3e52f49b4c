"""XPlane files as columns, by the compiled scanner if the package was built with one, else through protobuf."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from traceviz.parsers.shared.arrays.native import native
from traceviz.parsers.xplane.decode import compiled as xplane_compiled
from traceviz.parsers.xplane.decode.raw import Plane, Space
from traceviz.parsers.xplane.decode.wire import (
    BYTES,
    Broken,
    BrokenMessageError,
    CutShortError,
    Damage,
    Data,
    damage_words,
    read_fields,
    text,
    view,
)

_PLANE, _ERROR, _WARNING, _HOSTNAME = 1, 2, 3, 4
_MOST_FIELDS = 1 << 14
"""Maximum number of planes and messages of one file that are read: captures have tens, and each takes time."""

PlaneScanner = Callable[[Data, int, int], tuple[Plane, tuple[Damage, ...]]]


def read_space(data: bytes | memoryview, scanner: str | None = None) -> Space:
    """Return the columns of the XPlane file ``data``, up to any damage, which is in :attr:`Space.damage`.

    It never rejects a file: if nothing can be read, there are no planes.

    Args:
        data: The file. It is not copied.
        scanner: ``compiled`` or ``protobuf``; ``None`` for the available one, see :func:`available_scanner`.
    """
    scanner = scanner or available_scanner()
    scan = _plane_scanner(scanner)
    whole = view(data)
    planes: list[tuple[Plane, tuple[Damage, ...]]] = []
    texts: dict[int, list[str]] = {_ERROR: [], _WARNING: [], _HOSTNAME: []}
    broken, begin = Broken(), 0
    try:
        for count, (number, wire, value, stop) in enumerate(read_fields(whole, 0, len(whole)), 1):
            if count > _MOST_FIELDS:
                broken.unread = len(whole) - begin
                break
            begin = stop
            if number == _PLANE and wire == BYTES:
                planes.append(scan(whole, value, stop))
            elif number in texts and wire == BYTES:
                texts[number].append(text(whole[value:stop]))
            elif _PLANE <= number <= _HOSTNAME:
                broken.mistyped += 1
    except BrokenMessageError as error:
        broken.record_end(error)
        if isinstance(error, CutShortError) and (error.number, error.wire) == (_PLANE, BYTES):
            planes.append(scan(whole, error.begin, len(whole)))
    damage = [Damage("file", sentence) for sentence in damage_words(broken.numbers())]
    return Space(
        # If no part of a damaged plane could be read, the file may be of any kind
        tuple(
            plane
            for plane, plane_damage in planes
            if plane.name or plane.lines or plane.names or plane.properties or not plane_damage
        ),
        tuple(texts[_ERROR]),
        tuple(texts[_WARNING]),
        tuple(texts[_HOSTNAME]),
        (*damage, *chain.from_iterable(plane_damage for _, plane_damage in planes)),
        scanner,
    )


def available_scanner() -> str:
    """Return ``compiled`` if the package was built with it and TRACEVIZ_SCANNER does not select protobuf."""
    return "protobuf" if native() is None else "compiled"


def _plane_scanner(scanner: str) -> PlaneScanner:
    if scanner == "compiled":
        return xplane_compiled.scan_plane
    from traceviz.parsers.xplane.decode import protobuf as xplane_protobuf  # noqa: PLC0415 (loaded only where needed)

    return xplane_protobuf.scan_plane
