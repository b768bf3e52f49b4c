"""A JSON trace as a stream of segments: single members of the file, and blocks of its events.

The file is a list of events, or an object that holds one as ``traceEvents`` among members that describe the capture;
these come before it, after it or both::

    {"schemaVersion": 1, "traceEvents": [ {"name": "f", "args": {"n": 1}}, {...}, ... ], "host_name": "node7"}
    '-glue----------' '' '-glue--------' '-events--------------------------------------' '-glue------' '-----'
                      header                                                                            header

The text is never in memory as a whole. A reader takes a cut or broken text as far as possible, and gets a report of the
losses. A strict walk, for callers that need every byte, stops at the first damage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from traceviz.parsers.shared.json.grammar import BrokenError, CutError, skip_text, skip_value
from traceviz.parsers.shared.json.texts import text_value
from traceviz.parsers.shared.json.window import Window

EVENTS = "traceEvents"
BLOCK_BYTES = 8 * 2**20
"""Bytes of text scanned at once: small enough for the caches, large enough that the cost of a block is little."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NEXT_EVENT = re.compile(rb"\}[ \t\r\n]{0,80},[ \t\r\n]{0,80}(?=\{[ \t\r\n]{0,80}\")")
"""The end of an event before the next one. It may match elsewhere as well."""
_NEXT_EVENT_BYTES = 256  # the longest match
_EVENTS_MEMBER = re.compile(rb'"traceEvents"[ \t\r\n]{0,80}:[ \t\r\n]{0,80}(?=\[)')


class Stop(Enum):
    """Reason why a scan of events stopped."""

    MORE = 0
    """The text ended."""
    END = 1
    """The list of events ended."""
    BROKEN = 2
    """A byte is not allowed at its place."""


class Step(NamedTuple):
    """End of a scan.

    Args:
        stop: Reason of the stop.
        place: Position of the stop: before the incomplete element, or after the end of the list.
        broken: Position of the byte that is not allowed; otherwise ``place``.
    """

    stop: Stop
    place: int
    broken: int


Scan = Callable[[bytes, int], Step]
"""Function that takes the complete elements of a list of events in a text from a place on.

The place is before an element, a comma or the bracket that ends the list.
"""


class SegmentKind(Enum):
    """Kind of a segment of a trace."""

    GLUE = auto()
    """Signs and keys between the others."""
    HEADER = auto()
    """The value of a member of the file."""
    EVENTS = auto()
    """Complete elements of the list of events, the commas between them, and the bracket that ends the list."""


class Segment(NamedTuple):
    """A range of the file; all segments in order are the file, without blanks outside of values.

    Args:
        kind: Its kind.
        block: The text that holds it.
        begin: Its start in the block.
        end: Its end.
        key: Name of a header.
    """

    kind: SegmentKind
    block: bytes
    begin: int
    end: int
    key: str = ""

    @property
    def text(self) -> bytes:
        """Its bytes: a copy, made only on request."""
        return self.block[self.begin : self.end]


class DamagedTextError(Exception):
    """The text is not a complete trace; the message is a sentence that states the place."""


_Walk = Generator[Segment, None, bool]
"""Yields segments, and returns whether the text was complete up to there."""


@dataclass(slots=True, eq=False)
class TraceWalk:
    """The walk through one trace.

    Args:
        window: Its text.
        scan: Takes the events.
        strict: Raise at the first damage instead of continuing after it.
        damage: Losses, as sentences; complete once all segments were yielded.
        opened: The brace or bracket that opens the text; empty if it has neither.
        lists: The number of lists of events.
    """

    window: Window
    scan: Scan
    strict: bool = False
    damage: list[str] = field(default_factory=list)
    opened: bytes = b""
    lists: int = 0
    _wrapped: bool = False
    _broken: int = 0
    _broken_bytes: int = 0
    _broken_at: int = 0

    def segments(self) -> Iterator[Segment]:
        """Yield all segments.

        Raises:
            DamagedTextError: the walk is strict, and the text is not a complete trace.
        """
        window = self.window
        window.next()
        if window.text.startswith(_BYTE_ORDER_MARK, window.place):
            window.place += len(_BYTE_ORDER_MARK)
        first = window.next()
        if first not in {b"{", b"["}:
            if self.strict:
                raise DamagedTextError("It begins with neither { nor [.")
            return
        self.opened = first
        if first == b"[":
            whole = yield from self._events()
        else:
            yield self._sign()
            whole = yield from self._members()
        if self._broken:
            spots = "one place" if self._broken == 1 else f"{self._broken:,} places"
            self.damage.insert(
                0,
                f"The list of events is broken at {spots}, the first at byte {self._broken_at:,} of the text; "
                f"{self._broken_bytes:,} bytes were passed over.",
            )
        if whole and window.next():
            self._lose(f"The text goes on after the end of the trace, at byte {window.done:,}; that is not read.")

    def _lose(self, sentence: str) -> None:
        if self.strict:
            raise DamagedTextError(sentence)
        self.damage.append(sentence)

    def _lose_rest(self, where: str) -> bool:
        self._lose(f"The file ends {where}, after {self.window.done:,} bytes of text.")
        return False

    def _sign(self) -> Segment:
        """Return the byte at the window's place as a segment."""
        begin = self.window.place
        self.window.place += 1
        return Segment(SegmentKind.GLUE, self.window.text, begin, begin + 1)

    # Members of the file --------------------------------------------------------------------------------------------

    def _members(self) -> _Walk:
        """Yield members up to the closing brace; return whether it was there."""
        window = self.window
        while True:
            sign = window.next()
            if sign in {b"}", b","}:
                yield self._sign()
                if sign == b"}":
                    return True
                continue
            try:
                if not (yield from self._member()):
                    return False
            except CutError:
                return self._lose_rest("inside a member of the file")
            except BrokenError as error:
                window.place = error.place
                where = f"The text is no JSON from byte {window.done:,} on"
                if not window.seek(_EVENTS_MEMBER, _NEXT_EVENT_BYTES):
                    self._lose(f"{where}; that is not read.")
                    return False
                self._lose(f"{where}, up to the list of events.")
                if not (yield from self._events()):
                    return False

    def _member(self) -> _Walk:
        """Yield one member; return whether the file continues after it.

        Raises:
            CutError: the text ends inside it.
            BrokenError: it is not JSON.
        """
        window = self.window
        if not window.next():
            return self._lose_rest("before its closing brace")
        if window.text[window.place] != ord('"'):
            raise BrokenError(window.place)
        quoted = self._take(skip_text)
        if window.next() != b":":
            if window.ended and window.place >= len(window.text):
                raise CutError
            raise BrokenError(window.place)
        window.place += 1
        yield Segment(SegmentKind.GLUE, quoted + b":", 0, len(quoted) + 1)
        key = text_value(quoted) or ""
        first = window.next()
        if key == EVENTS and first == b"[":
            return (yield from self._events())
        if key == EVENTS and first == b"{" and not self._wrapped:  # a tool wrapped the whole file once more
            self._wrapped = True
            yield self._sign()
            return (yield from self._members())
        if not first:
            raise CutError
        value = self._take(skip_value)
        yield Segment(SegmentKind.HEADER, value, 0, len(value), key)
        return True

    def _take(self, skip: Callable[[bytes, int], int]) -> bytes:
        """Return the text of the value at the window's place, which is widened until the value is complete."""
        window = self.window
        while True:
            try:
                end = skip(window.text, window.place)
            except CutError:
                if not window.more():
                    raise
            else:
                text = window.text[window.place : end]
                window.place = end
                return text

    # The list of events ---------------------------------------------------------------------------------------------

    def _events(self) -> _Walk:
        """Yield a list of events; return whether its end was there."""
        window = self.window
        self.lists += 1
        yield self._sign()
        while True:
            begin = window.place
            step = self.scan(window.text, begin)
            window.place = step.place
            if step.place > begin:
                yield Segment(SegmentKind.EVENTS, window.text, begin, step.place)
            if step.stop is Stop.END:
                return True
            if step.stop is Stop.MORE:
                if not window.more():
                    lost = len(window.text) - window.place
                    inside = f"inside an event, of which {lost:,} bytes are there"
                    return self._lose_rest(inside if lost else "before its list of events does")
            elif not self._resume(step.broken):
                return False

    def _resume(self, broken: int) -> bool:
        """Skip the broken part, up to the next event; return whether there is one."""
        window = self.window
        begin = window.done
        at = begin + broken - window.place
        if self.strict:
            raise DamagedTextError(f"The list of events is broken at byte {at:,} of the text.")
        if not self._broken:
            self._broken_at = at
        self._broken += 1
        window.place = broken
        resumed = window.seek(NEXT_EVENT, _NEXT_EVENT_BYTES)
        self._broken_bytes += window.done - begin
        return resumed
