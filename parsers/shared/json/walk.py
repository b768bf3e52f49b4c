"""A JSON trace as a stream of segments: the members of the file one by one, its events as many as a block holds.

The file is a list of events, or an object that holds one as ``traceEvents`` among members that describe the capture;
these come before it, after it or both::

    {"schemaVersion": 1, "traceEvents": [ {"name": "f", "args": {"n": 1}}, {...}, ... ], "host_name": "node7"}
    '-glue----------' '' '-glue--------' '-events--------------------------------------' '-glue------' '-----'
                      header                                                                            header

No text is ever in memory as a whole. A reader takes what is cut off or broken as far as it goes, and learns what was
lost; whoever must see every byte walks strictly, and stops at the first damage.
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
"""How much text is looked at once: small enough for the caches, large enough that the cost of a block is little."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NEXT_EVENT = re.compile(rb"\}[ \t\r\n]{0,80},[ \t\r\n]{0,80}(?=\{[ \t\r\n]{0,80}\")")
"""What ends an event and stands before the next one. It may stand elsewhere as well."""
_NEXT_EVENT_BYTES = 256  # the longest match
_EVENTS_MEMBER = re.compile(rb'"traceEvents"[ \t\r\n]{0,80}:[ \t\r\n]{0,80}(?=\[)')


class Stop(Enum):
    """Why a scan of events stopped."""

    MORE = 0
    """The text ended."""
    END = 1
    """The list of events ended."""
    BROKEN = 2
    """A byte cannot stand where it does."""


class Step(NamedTuple):
    """How far a scan came.

    Args:
        stop: Why it stopped there.
        place: Where it stopped: before the element that is not whole, or after the end of the list.
        broken: The byte that cannot stand where it does; otherwise ``place``.
    """

    stop: Stop
    place: int
    broken: int


Scan = Callable[[bytes, int], Step]
"""Takes the whole elements of a list of events in a text from a place on.

The place is before an element, a comma or the bracket that ends the list.
"""


class SegmentKind(Enum):
    """What a segment of a trace is."""

    GLUE = auto()
    """Signs and keys between the others."""
    HEADER = auto()
    """The value of a member of the file."""
    EVENTS = auto()
    """Whole elements of the list of events, the commas between them, and the bracket that ends the list."""


class Segment(NamedTuple):
    """A stretch of the file; all of them one after the other are the file, but for blanks outside of values.

    Args:
        kind: What it is.
        block: The text that holds it.
        begin: Where it begins in the block.
        end: Where it ends.
        key: Of a header, its name.
    """

    kind: SegmentKind
    block: bytes
    begin: int
    end: int
    key: str = ""

    @property
    def text(self) -> bytes:
        """Its bytes: a copy, which only those pay for who look at them."""
        return self.block[self.begin : self.end]


class DamagedTextError(Exception):
    """The text is no whole trace; the message is a sentence that says where."""


_Walk = Generator[Segment, None, bool]
"""Segments, and in the end whether the text was whole up to there."""


@dataclass(slots=True, eq=False)
class TraceWalk:
    """The walk through one trace.

    Args:
        window: Its text.
        scan: Takes the events.
        strict: Raise the first damage, rather than go on after it.
        damage: What was lost, as sentences; complete once all segments were given.
        opened: The brace or bracket that the text begins with; empty where it begins with neither.
        lists: The number of lists of events.
    """

    window: Window
    scan: Scan
    strict: bool = False
    damage: list[str] = field(default_factory=list)
    opened: bytes = b""
    lists: int = 0
    _broken: int = 0
    _broken_bytes: int = 0
    _broken_at: int = 0

    def segments(self) -> Iterator[Segment]:
        """All segments.

        Raises:
            DamagedTextError: the walk is strict, and the text is no whole trace.
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
            self.damage.insert(0, self._broken_sentence())
        if whole and window.next():
            self._lose(f"The text goes on after the end of the trace, at byte {window.done:,}; that is not read.")

    def _broken_sentence(self) -> str:
        spots = "one place" if self._broken == 1 else f"{self._broken:,} places"
        return (
            f"The list of events is broken at {spots}, the first at byte {self._broken_at:,} of the text; "
            f"{self._broken_bytes:,} bytes were passed over."
        )

    def _lose(self, sentence: str) -> None:
        if self.strict:
            raise DamagedTextError(sentence)
        self.damage.append(sentence)

    def _lose_rest(self, where: str) -> bool:
        self._lose(f"The file ends {where}, after {self.window.done:,} bytes of text.")
        return False

    def _sign(self) -> Segment:
        """The byte at the window's place."""
        begin = self.window.place
        self.window.place += 1
        return Segment(SegmentKind.GLUE, self.window.text, begin, begin + 1)

    # Members of the file --------------------------------------------------------------------------------------------

    def _members(self) -> _Walk:
        """Members up to the closing brace; whether it was there."""
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
        """One member; whether the file goes on after it.

        Raises:
            CutError: the text ends inside it.
            BrokenError: it is no JSON.
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
        if not first:
            raise CutError
        value = self._take(skip_value)
        yield Segment(SegmentKind.HEADER, value, 0, len(value), key)
        return True

    def _take(self, skip: Callable[[bytes, int], int]) -> bytes:
        """The text of the value at the window's place, which is widened until it is whole."""
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
        """A list of events; whether its end was there."""
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
        """Pass over what is broken, up to the next event; whether there is one."""
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
