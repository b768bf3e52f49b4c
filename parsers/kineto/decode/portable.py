"""Events of a Chrome-format trace through msgspec: for machines without the compiled scanner.

A block of text is cut at the border of two events and decoded at once; each value stays JSON text. Blocks that break
JSON's rules are split into single events.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count, repeat
from operator import attrgetter, is_not
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from traceviz.parsers.kineto.decode.columns import ABSENT, NO_TIME, TEXT_MEMBERS, Codes, Integers, Odd, Sparse
from traceviz.parsers.kineto.decode.values import INT64
from traceviz.parsers.kineto.raw import PHASES, Argument, Kind
from traceviz.parsers.shared.json.grammar import BrokenError, CutError, Members, skip_value
from traceviz.parsers.shared.json.texts import text_value
from traceviz.parsers.shared.json.walk import Step, Stop

_NOTHING = msgspec.Raw(b"")
_BETWEEN = re.compile(rb"[, \t\r\n]*")
_AFTER_BRACE = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*\{[ \t\r\n]*\"")
_PLACE = re.compile(r"\(byte (\d+)\)$")
_CUTS_TRIED = 8
_SHORT_REACH = 2**16
"""Bytes to decode at once after text that breaks JSON's rules: more of it may follow."""
_KNOWN = {f'"{phase}"'.encode(): place for place, phase in enumerate(PHASES)}
_PLAIN = re.compile(rb"-?[0-9]{1,18}")
_ALL_PLAIN = re.compile(rb"-?[0-9]{1,18}(?:,-?[0-9]{1,18})*")
_TIME = re.compile(rb'("?)(-?)([0-9]{1,16})(?:\.([0-9]+))?\1')


class PortableScanner:
    """See :class:`~traceviz.parsers.kineto.decode.columns.Scanner`.

    Args:
        arguments: The arguments to read.
    """

    name = "msgspec"

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self._pieces = PortablePieces(arguments)
        # Events and their arguments are JSON texts, empty if an event has none
        fields = self._pieces.fields
        self._arguments = msgspec.defstruct(
            "Arguments",
            [(name, msgspec.Raw, _NOTHING) for name in fields.values()],
            rename={name: key for key, name in fields.items()},
            gc=False,
            frozen=True,
        )
        self._event = msgspec.defstruct(
            "Event",
            [
                *((name, msgspec.Raw, _NOTHING) for name in _FIELDS.values()),
                ("args", self._arguments, self._arguments()),
            ],
            rename={name: key for key, name in _FIELDS.items()},
            gc=False,
        )
        self._decoder = msgspec.json.Decoder(list[self._event])  # type: ignore[name-defined]

    def feed(self, text: bytes, place: int) -> Step:
        """See :meth:`Scanner.feed`."""
        reach, burst = len(text), 1
        while True:
            place = _between(text, place)
            at, sound = self._take_block(text, place, min(place + reach, len(text)))
            reach = 2 * reach if sound else _SHORT_REACH
            burst = 1 if at > place else 2 * burst
            step = self._take_singly(text, at, burst)
            if step.stop is not Stop.MORE or step.broken < 0:
                return Step(step.stop, step.place, max(step.place, step.broken))
            place = step.place

    def pieces(self) -> PortablePieces:
        """See :meth:`Scanner.pieces`."""
        return self._pieces

    def _take_block(self, text: bytes, place: int, end: int) -> tuple[int, bool]:
        """Decode up to the last border of events before ``end`` that msgspec accepts.

        Returns:
            The place of that border, and whether all text before ``end`` was valid.
        """
        for tried in range(_CUTS_TRIED):
            brace, following = _last_border(text, place, end)
            if brace < 0:
                return place, tried == 0
            try:
                events = self._decoder.decode(b"[" + text[place : brace + 1] + b"]")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                match = _PLACE.search(str(error))
                end = min(brace, place - 1 + int(match[1]) if match else brace)
            else:
                self._pieces.add(events)
                return following, tried == 0
        return place, False

    def _take_singly(self, text: bytes, place: int, most: int) -> Step:
        """Take up to ``most`` elements one by one; ``broken`` is -1 if the text ended before ``most`` was reached."""
        events: list[Any] = []
        try:
            for _ in range(most):
                place = _between(text, place)
                match text[place : place + 1]:
                    case b"":
                        return Step(Stop.MORE, place, -1)
                    case b"]":
                        return Step(Stop.END, place + 1, place + 1)
                    case b"{":
                        event, end = self._read_event(text, place)
                        events.append(event)
                    case _:
                        end = skip_value(text, place)
                        self._pieces.no_objects += 1
                place = end
        except CutError:
            return Step(Stop.MORE, place, -1)
        except BrokenError as error:
            return Step(Stop.BROKEN, place, error.place)
        finally:
            self._pieces.add(events)
        return Step(Stop.MORE, place, place)

    def _read_event(self, text: bytes, place: int) -> tuple[Any, int]:
        """Return the event whose brace is at ``place``, and its end."""
        fields, arguments = {}, {}
        members = Members(text, place)
        for key, begin, end in members:
            word = text_value(b'"' + key + b'"')
            if word in _FIELDS:
                fields[_FIELDS[word]] = text[begin:end]
            elif word == "args":
                of_event = Members(text, begin) if text[begin] == ord("{") else ()
                known = ((text_value(b'"' + member.key + b'"'), member) for member in of_event)
                names = self._pieces.fields
                arguments = {names[key]: text[member.begin : member.end] for key, member in known if key in names}
        return self._event(**fields, args=self._arguments(**arguments)), members.place


def _between(text: bytes, place: int) -> int:
    match = _BETWEEN.match(text, place)
    assert match is not None
    return match.end()


def _last_border(text: bytes, begin: int, end: int) -> tuple[int, int]:
    """Return the last brace before ``end`` that precedes another object, and the place of that one; -1 without any."""
    while (end := text.rfind(b"}", begin, end)) >= 0:
        match = _AFTER_BRACE.match(text, end + 1)
        if match is not None:
            return end, text.index(b"{", end)
    return -1, -1


_FIELDS = {"ph": "ph", "name": "name", "cat": "category", "pid": "pid", "tid": "tid", "ts": "ts", "dur": "dur"}
"""Members of an event that are read, and their fields."""


class _Growing:
    """Rows and values of one column, block after block."""

    def __init__(self, kind: type[np.generic]) -> None:
        self.kind = kind
        self.rows: list[npt.NDArray[np.int32]] = []
        self.values: list[npt.NDArray[Any]] = []

    def add(self, rows: Sequence[int], values: Sequence[int]) -> None:
        if rows:
            self.rows.append(np.array(rows, np.int32))
            self.values.append(np.array(values, self.kind))

    def taken(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
        rows = np.concatenate(self.rows) if self.rows else np.empty(0, np.int32)
        values = np.concatenate(self.values) if self.values else np.empty(0, self.kind)
        self.rows, self.values = [], []
        return rows, values


class PortablePieces:
    """See :class:`~traceviz.parsers.kineto.decode.columns.Pieces`.

    Args:
        arguments: The arguments to read.
    """

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self.arguments = arguments
        self.fields = {
            key: f"a{place}" for place, key in enumerate(key for argument in arguments for key in argument.keys)
        }
        """Field of every spelling of every argument."""
        self.rows = 0
        self.no_objects = 0
        self._texts: dict[bytes, int] = {}
        self._passed: Counter[int] = Counter()
        self.passed_over: Mapping[int, int] = self._passed
        self._phases: list[npt.NDArray[np.uint8]] = []
        self._members: dict[str, list[Codes]] = {member: [] for member in TEXT_MEMBERS}
        self._times: dict[str, list[Integers]] = {"ts": [], "dur": []}
        self._odd = {name: _Growing(np.int32) for name in ("ts", "dur", *(argument.column for argument in arguments))}
        self._arguments = {
            argument.column: _Growing(np.int64 if argument.kind is Kind.INTEGER else np.int32) for argument in arguments
        }

    def add(self, events: Sequence[Any]) -> None:
        """Take the values of these events."""
        phases = [_KNOWN.get(bytes(event.ph), ABSENT) for event in events]
        if ABSENT in phases:
            for event, phase in zip(events, phases, strict=True):
                if phase == ABSENT and (event.ph or any(getattr(event, name) for name in _FIELDS.values())):
                    self._passed[self._codes([event.ph])[0]] += 1
            events = [event for event, phase in zip(events, phases, strict=True) if phase != ABSENT]
            phases = [phase for phase in phases if phase != ABSENT]
        if self.rows + len(events) > 2**31 - 1:
            raise OverflowError
        self._phases.append(np.array(phases, np.uint8))
        for member, codes in self._members.items():
            codes.append(np.array(self._codes(map(attrgetter(member), events)), np.int32))
        for member in self._times:
            raws = list(map(attrgetter(member), events))
            times = [_plain_time(bytes(raw)) for raw in raws]
            self._times[member].append(np.array([NO_TIME if time is None else time for time in times], np.int64))
            odd = [place for place, time in enumerate(times) if time is None and (member == "ts" or raws[place])]
            self._add_odd(member, odd, [bytes(raws[place]) for place in odd])
        arguments = (msgspec.structs.astuple(event.args) for event in events)
        columns = dict(zip(self.fields, zip(*arguments, strict=True), strict=False))  # no columns without events
        for argument in self.arguments if columns else ():
            column: Sequence[Any] = columns[argument.keys[0]]
            for key in argument.keys[1:]:  # the first of several spellings counts
                column = [above or below for above, below in zip(column, columns[key], strict=True)]
            self._add_argument(argument, column)
        self.rows += len(events)

    def _codes(self, raws: Iterable[Any]) -> list[int]:
        texts = self._texts
        return [texts.setdefault(raw, len(texts)) if raw else ABSENT for raw in map(bytes, raws)]

    def _add_odd(self, name: str, positions: Sequence[int], raws: Sequence[bytes]) -> None:
        self._odd[name].add([self.rows + place for place in positions], self._codes(raws))

    def _add_argument(self, argument: Argument, column: Sequence[Any]) -> None:
        positions = list(compress(count(), map(is_not, column, repeat(_NOTHING))))
        raws = [bytes(column[place]) for place in positions]
        if argument.kind is not Kind.INTEGER:
            self._arguments[argument.column].add([self.rows + place for place in positions], self._codes(raws))
            return
        if not _ALL_PLAIN.fullmatch(b",".join(raws)):
            plain = [_PLAIN.fullmatch(raw) is not None for raw in raws]
            odd = [at for at, is_plain in enumerate(plain) if not is_plain]
            self._add_odd(argument.column, [positions[at] for at in odd], [raws[at] for at in odd])
            positions = [place for place, is_plain in zip(positions, plain, strict=True) if is_plain]
            raws = [raw for raw, is_plain in zip(raws, plain, strict=True) if is_plain]
        self._arguments[argument.column].add([self.rows + place for place in positions], list(map(int, raws)))

    def texts(self) -> Sequence[bytes]:
        """See :meth:`Pieces.texts`."""
        return list(self._texts)

    def phases(self) -> npt.NDArray[np.uint8]:
        """See :meth:`Pieces.phases`."""
        return _joined(self._phases, np.uint8)

    def codes(self, member: str) -> Codes:
        """See :meth:`Pieces.codes`."""
        return _joined(self._members.pop(member), np.int32)

    def times(self, member: str) -> tuple[Integers, Odd]:
        """See :meth:`Pieces.times`."""
        return _joined(self._times.pop(member), np.int64), Odd(*self._odd[member].taken())

    def argument(self, column: str) -> Sparse:
        """See :meth:`Pieces.argument`."""
        return Sparse(*self._arguments[column].taken(), Odd(*self._odd[column].taken()))


def _plain_time(raw: bytes) -> int | None:
    match = _TIME.fullmatch(raw)
    if match is None:
        return None
    _, sign, whole, decimals = match.groups()
    time = int(whole) * 1000 + (int(decimals[:3].ljust(3, b"0")) if decimals else 0)
    if time >= INT64 - 1000:
        return None
    return -time if sign else time


def _joined(parts: Sequence[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, kind)
