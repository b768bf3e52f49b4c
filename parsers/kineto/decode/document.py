"""A Chrome-format trace, plain or gzip, to columns: as a stream, so that the text is never in memory as a whole.

Cut or broken files are read as far as possible: see :attr:`~traceviz.parsers.kineto.raw.RawTrace.damage`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traceviz.core.errors import DamagedTraceError
from traceviz.core.units import format_value
from traceviz.parsers.base import Progress, silent
from traceviz.parsers.kineto.decode.columns import Scanner, build
from traceviz.parsers.kineto.decode.compiled import CompiledScanner, native
from traceviz.parsers.kineto.decode.halves import Halves, second_half
from traceviz.parsers.kineto.decode.portable import PortableScanner
from traceviz.parsers.kineto.decode.values import header_value
from traceviz.parsers.kineto.raw import ARGUMENTS, RawTrace
from traceviz.parsers.shared.json.stream import TextStream
from traceviz.parsers.shared.json.walk import EVENTS, SegmentKind, TraceWalk
from traceviz.parsers.shared.json.window import Window
from traceviz.parsers.shared.prefetch import read_early

BLOCK_BYTES = 2**21
"""Bytes of text per step: a block is scanned while it is in the caches."""
HEADER_BYTES = 4 * 10**6
"""Maximum bytes of members next to the events: as Python values, JSON takes up to 25 times its length."""

_AGAIN = "Copy the file again, or record again."
_RECORD = "Record with torch.profiler.profile(...) as prof, and write prof.export_chrome_trace(FILE)."


def decode(
    path: Path,
    arguments: frozenset[str] | None = None,
    *,
    max_size: int | None = None,
    progress: Progress = silent,
    scanner: str | None = None,
    block_bytes: int = BLOCK_BYTES,
    halves_from: int | None = None,
) -> RawTrace:
    """Decode the events of the file ``path``, gzip or not.

    Args:
        path: The file.
        arguments: Columns of :data:`~traceviz.parsers.kineto.raw.ARGUMENTS` that are wanted; ``None`` for all.
        max_size: The longest text to read, in bytes; ``None`` for the limits of
            :mod:`~traceviz.parsers.shared.json.stream`.
        progress: Receives the bytes read.
        scanner: ``compiled`` or ``msgspec``; ``None`` for the fastest available.
        block_bytes: Bytes of text per step.
        halves_from: Minimum length of a plain file that is scanned in two halves at a time; ``None`` if this depends on
            the machine.

    Raises:
        DamagedTraceError: the file cannot be read, is no trace, or has no complete event; or its text is longer than
            ``max_size``.
    """
    selected = [argument for argument in ARGUMENTS if arguments is None or argument.column in arguments]
    stream = TextStream(path, max_size, progress)
    is_compiled = (scanner or available_scanner()) == CompiledScanner.name
    events: Scanner = CompiledScanner(selected) if is_compiled else PortableScanner(selected)
    half = None
    if isinstance(events, CompiledScanner) and max_size is None:
        half = second_half(path, CompiledScanner(selected), block_bytes, halves_from)
    try:
        if half is not None and isinstance(events, CompiledScanner):
            halves = Halves(stream, events, half, block_bytes)
            walk = TraceWalk(halves.window, halves.feed)
        else:
            window = Window(read_early(stream.blocks(block_bytes), block_bytes), name=str(path))
            walk = TraceWalk(window, events.feed)
        header, left_out = _read(walk)
    except OverflowError as error:
        raise DamagedTraceError(f"{path} holds more than 2,147,483,647 events.", fix="Record fewer steps.") from error
    finally:
        if half is not None:
            half.close()
    pieces = events.pieces()
    damage = " ".join(filter(None, (stream.damage, *walk.damage)))
    if not walk.lists or (damage and not pieces.rows):
        raise _no_events(path, walk, header, damage)
    built = build(pieces, selected)
    return RawTrace(
        header, built.events, built.passed_over, built.unusable, damage, events.name, {**left_out, **built.repaired}
    )


def _read(walk: TraceWalk) -> tuple[dict[str, Any], dict[str, int]]:
    """Walk through the file, and feed its events to the scanner.

    Returns:
        The other members of the file, and the number of those left out, by reason.
    """
    header: dict[str, Any] = {}
    left_out: Counter[str] = Counter()
    room = HEADER_BYTES
    for segment in walk.segments():
        if segment.kind is not SegmentKind.HEADER:
            continue
        if segment.end - segment.begin > room:
            left_out[_TOO_LONG] += 1
            continue
        room -= segment.end - segment.begin
        try:
            header[segment.key] = header_value(segment.text)
        except ValueError:
            walk.damage.append(f"What the file says as {segment.key!r} is no JSON; it is left out.")
    return header, left_out


_TOO_LONG = f"members of the file beside its events, beyond {format_value(HEADER_BYTES, 'bytes')} of them"


def available_scanner() -> str:
    """Return ``compiled`` if the package was built with it and TRACEVIZ_SCANNER does not disable it."""
    return PortableScanner.name if native() is None else CompiledScanner.name


def _no_events(path: Path, walk: TraceWalk, header: Mapping[str, Any], damage: str) -> DamagedTraceError:
    """Return the error for a file without events."""
    if walk.opened == b"{" and not walk.lists and not damage:
        names = ", ".join(list(header)[:5]) or "no member"
        return DamagedTraceError(
            f"{path} is JSON, but no trace: it has no list {EVENTS}.", f"It holds {names}.", _RECORD
        )
    if not walk.opened:
        return DamagedTraceError(f"{path} is no JSON: it begins with neither {{ nor [.", damage)
    return DamagedTraceError(f"{path} holds no event that can be read.", damage, _AGAIN)
