"""Events of a Chrome-format trace through the compiled scanner, which exists if there was a C compiler."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.parsers.kineto.decode.columns import ABSENT, TEXT_MEMBERS, Codes, Integers, Odd, Sparse
from traceviz.parsers.kineto.raw import PHASES, Argument, Kind
from traceviz.parsers.shared.arrays.native import SCANNER_VARIABLE
from traceviz.parsers.shared.json.walk import Step, Stop

try:
    from traceviz.parsers import _kineto
except ImportError:
    library: ModuleType | None = None
else:
    library = _kineto

_DO_WITHOUT = frozenset({"msgspec", "protobuf"})
"""Values of the environment variable that disable compiled code."""


def native() -> ModuleType | None:
    """Return the compiled scanner; ``None`` if there is none or the environment disables it."""
    return None if os.environ.get(SCANNER_VARIABLE) in _DO_WITHOUT else library


class CompiledScanner:
    """See :class:`~traceviz.parsers.kineto.decode.columns.Scanner`.

    Args:
        arguments: The arguments to read.
    """

    name = "compiled"

    def __init__(self, arguments: Sequence[Argument]) -> None:
        assert library is not None
        keys: list[tuple[bytes, int, int]] = []
        for column, argument in enumerate(arguments):
            for place, key in enumerate(argument.keys):
                keys.append((key.encode(), column, len(keys) - 1 if place else ABSENT))
        integers = bytes(argument.kind is Kind.INTEGER for argument in arguments)
        self._scanner = library.Scanner(PHASES.encode(), integers, tuple(keys))
        self._arguments = arguments

    def feed(self, text: bytes, place: int) -> Step:
        """See :meth:`Scanner.feed`."""
        stop, reached, broken = self._scanner.feed(text, place)
        return Step(Stop(stop), reached, broken)

    def join(self, other: CompiledScanner) -> None:
        """Take the findings of ``other``, as if this scanner had read that text as well, after its own.

        Raises:
            OverflowError: together they have more than 2,147,483,647 events or distinct texts.
        """
        self._scanner.join(other._scanner)

    def pieces(self) -> CompiledPieces:
        """See :meth:`Scanner.pieces`."""
        return CompiledPieces(self._scanner, self._arguments)


class CompiledPieces:
    """See :class:`~traceviz.parsers.kineto.decode.columns.Pieces`.

    Args:
        scanner: The compiled scanner, which has read everything.
        arguments: The arguments that it read, in its order.
    """

    def __init__(self, scanner: Any, arguments: Sequence[Argument]) -> None:
        self._scanner = scanner
        self._place = {argument.column: place for place, argument in enumerate(arguments)}
        self._kind = {argument.column: "i8" if argument.kind is Kind.INTEGER else "i4" for argument in arguments}
        self.rows: int
        self.no_objects: int
        self.rows, self.no_objects, passed_over = scanner.counts()
        counts = np.frombuffer(passed_over, np.int64)
        self.passed_over: Mapping[int, int] = {
            place - 1: int(counts[place]) for place in np.flatnonzero(counts).tolist()
        }

    def texts(self) -> Sequence[bytes]:
        """See :meth:`Pieces.texts`."""
        together, begins = self._scanner.texts()
        bounds = [*np.frombuffer(begins, np.int64).tolist(), len(together)]
        return [together[begin:end] for begin, end in pairwise(bounds)]

    def phases(self) -> npt.NDArray[np.uint8]:
        """See :meth:`Pieces.phases`."""
        return np.frombuffer(self._scanner.phases(), np.uint8)

    def codes(self, member: str) -> Codes:
        """See :meth:`Pieces.codes`."""
        return np.frombuffer(self._scanner.member(1 + TEXT_MEMBERS.index(member)), np.int32)

    def times(self, member: str) -> tuple[Integers, Odd]:
        """See :meth:`Pieces.times`."""
        times, rows, codes = self._scanner.times(("ts", "dur").index(member))
        return np.frombuffer(bytearray(times), np.int64), _odd(rows, codes)

    def argument(self, column: str) -> Sparse:
        """See :meth:`Pieces.argument`."""
        rows, values, odd_rows, odd_codes = self._scanner.column(self._place[column])
        return Sparse(
            np.frombuffer(rows, np.int32), np.frombuffer(values, self._kind[column]), _odd(odd_rows, odd_codes)
        )


def _odd(rows: bytes, codes: bytes) -> Odd:
    return Odd(np.frombuffer(rows, np.int32), np.frombuffer(codes, np.int32))
