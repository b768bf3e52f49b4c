"""A Chrome-format trace, plain or gzip, to columns: as a stream, so that the text is never in memory as a whole.

The file is a list of events, or an object that holds one as ``traceEvents`` among members that describe the capture;
these come before it, after it or both. What is cut off or broken is read as far as it goes: see
:attr:`~traceviz.parsers.kineto.raw.RawTrace.damage`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traceviz.errors import DamagedTraceError
from traceviz.parsers.base import Progress, silent
from traceviz.parsers.kineto.decode.columns import build
from traceviz.parsers.kineto.decode.compiled import CompiledScanner, native
from traceviz.parsers.kineto.decode.portable import PortableScanner
from traceviz.parsers.kineto.decode.scanner import Found, Scanner
from traceviz.parsers.kineto.decode.values import header_value, text_value
from traceviz.parsers.kineto.raw import ARGUMENTS, Argument, RawTrace
from traceviz.parsers.shared.json_grammar import BrokenError, CutError, skip_text, skip_value
from traceviz.parsers.shared.json_stream import TextStream
from traceviz.parsers.shared.json_window import Window

BLOCK_BYTES = 8 * 2**20
"""How much text is looked at once: small enough for the caches' sake, large enough that a block's price is little."""

EVENTS = "traceEvents"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NEXT_EVENT = re.compile(rb"\}[ \t\r\n]{0,80},[ \t\r\n]{0,80}(?=\{[ \t\r\n]{0,80}\")")
_NEXT_EVENT_BYTES = 256  # the longest match
_EVENTS_MEMBER = re.compile(rb'"traceEvents"[ \t\r\n]{0,80}:[ \t\r\n]{0,80}(?=\[)')
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
) -> RawTrace:
    """The events of the file ``path``, gzip or not.

    Args:
        path: The file.
        arguments: Columns of :data:`~traceviz.parsers.kineto.raw.ARGUMENTS` that are wanted; ``None`` for all.
        max_size: The longest text to read, in bytes; ``None`` for the limits of
            :mod:`~traceviz.parsers.shared.json_stream`.
        progress: Is told how much of the file is read.
        scanner: ``compiled`` or ``msgspec``; ``None`` for the fastest that there is.
        block_bytes: How much text is looked at once.

    Raises:
        DamagedTraceError: the file cannot be read, is no trace, or no event of it is whole; or its text is longer than
            ``max_size``.
    """
    wanted = [one for one in ARGUMENTS if arguments is None or one.column in arguments]
    stream = TextStream(path, max_size, progress)
    document = _Document(Window(stream.blocks(block_bytes)), _scanner(scanner or available_scanner(), wanted))
    try:
        document.read()
    except OverflowError as error:
        raise DamagedTraceError(f"{path} holds more than 2,147,483,647 events.", fix="Record fewer steps.") from error
    pieces = document.scanner.pieces()
    damage = " ".join(one for one in (stream.damage, *document.damage) if one)
    if not document.lists or (damage and not pieces.rows):
        raise _no_events(path, document, damage)
    built = build(pieces, wanted)
    return RawTrace(
        document.header,
        built.events,
        built.passed_over,
        built.unusable,
        damage,
        document.scanner.name,
        built.repaired,
    )


def available_scanner() -> str:
    """``compiled`` where the package was built with it and TRACEVIZ_SCANNER does not ask to do without."""
    return PortableScanner.name if native() is None else CompiledScanner.name


def _scanner(name: str, wanted: Sequence[Argument]) -> Scanner:
    return CompiledScanner(wanted) if name == CompiledScanner.name else PortableScanner(wanted)


def _no_events(path: Path, document: _Document, damage: str) -> DamagedTraceError:
    """Why a file without events is none that can be read."""
    if document.opened == b"{" and not document.lists and not damage:
        names = ", ".join(list(document.header)[:5]) or "no member"
        return DamagedTraceError(
            f"{path} is JSON, but no trace: it has no list {EVENTS}.", f"It holds {names}.", _RECORD
        )
    if not document.opened:
        return DamagedTraceError(f"{path} is no JSON: it begins with neither {{ nor [.", damage)
    return DamagedTraceError(f"{path} holds no event that can be read.", damage, _AGAIN)


@dataclass(slots=True, eq=False)
class _Document:
    """The walk through a file."""

    window: Window
    scanner: Scanner
    header: dict[str, Any] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    opened: bytes = b""
    lists: int = 0
    _broken: int = 0
    _broken_bytes: int = 0
    _broken_at: int = 0

    def read(self) -> None:
        """Read all of it."""
        window = self.window
        window.next()
        if window.text.startswith(_BYTE_ORDER_MARK, window.place):
            window.place += len(_BYTE_ORDER_MARK)
        first = window.next()
        if first not in {b"{", b"["}:
            return
        self.opened = first
        if first == b"[":
            whole = self._events()
        else:
            window.place += 1
            whole = self._members()
        if self._broken:
            self.damage.insert(0, self._broken_words())
        if whole and window.next():
            self.damage.append(
                f"The text goes on after the end of the trace, at byte {window.done:,}; that is not read."
            )

    def _broken_words(self) -> str:
        places = "one place" if self._broken == 1 else f"{self._broken:,} places"
        return (
            f"The list of events is broken at {places}, the first at byte {self._broken_at:,} of the text; "
            f"{self._broken_bytes:,} bytes were passed over."
        )

    # Members of the file --------------------------------------------------------------------------------------------

    def _members(self) -> bool:
        """Read members up to the closing brace; whether it was there."""
        window = self.window
        while True:
            byte = window.next()
            if byte == b"}":
                window.place += 1
                return True
            if byte == b",":
                window.place += 1
                continue
            try:
                if not self._member():
                    return False
            except CutError:
                return self._ends("inside a member of the file")
            except BrokenError as error:
                window.place = error.place
                where = window.done
                if not window.seek(_EVENTS_MEMBER, _NEXT_EVENT_BYTES):
                    self.damage.append(f"The text is no JSON from byte {where:,} on; that is not read.")
                    return False
                self.damage.append(f"The text is no JSON from byte {where:,} on, up to the list of events.")
                if not self._events():
                    return False

    def _member(self) -> bool:
        """Read one member. Whether the file goes on after it."""
        window = self.window
        if not window.next():
            return self._ends("before its closing brace")
        if window.text[window.place] != ord('"'):
            raise BrokenError(window.place)
        key = text_value(self._take(skip_text)) or ""
        if window.next() != b":":
            if window.ended and window.place >= len(window.text):
                raise CutError
            raise BrokenError(window.place)
        window.place += 1
        if key == EVENTS and window.next() == b"[":
            return self._events()
        if not window.next():
            raise CutError
        raw = self._take(skip_value)
        try:
            self.header[key] = header_value(raw)
        except (ValueError, RecursionError):
            self.damage.append(f"What the file says as {key!r} is no JSON; it is left out.")
        return True

    def _take(self, skip: Any) -> bytes:
        """The text of the value at the window's place, which is widened until it is whole."""
        window = self.window
        while True:
            try:
                end = skip(window.text, window.place)
            except CutError:
                if not window.more():
                    raise
            else:
                raw = window.text[window.place : end]
                window.place = end
                return raw

    def _ends(self, where: str) -> bool:
        self.damage.append(f"The file ends {where}, after {self.window.done:,} bytes of text.")
        return False

    # The list of events ---------------------------------------------------------------------------------------------

    def _events(self) -> bool:
        """Read a list of events; whether its end was there."""
        window = self.window
        window.place += 1
        self.lists += 1
        while True:
            step = self.scanner.feed(window.text, window.place)
            window.place = step.place
            if step.found is Found.END:
                return True
            if step.found is Found.MORE:
                if not window.more():
                    return self._list_ends()
            elif not self._resume(step.broken):
                return False

    def _list_ends(self) -> bool:
        lost = len(self.window.text) - self.window.place
        inside = f"inside an event, of which {lost:,} bytes are there" if lost else "before its list of events does"
        return self._ends(inside)

    def _resume(self, broken: int) -> bool:
        """Pass over what is broken, up to the next event; whether there is one."""
        window = self.window
        begin = window.done
        if not self._broken:
            self._broken_at = begin + broken - window.place
        self._broken += 1
        window.place = broken
        found = window.seek(_NEXT_EVENT, _NEXT_EVENT_BYTES)
        self._broken_bytes += window.done - begin
        return found
