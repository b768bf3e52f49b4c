"""Event tables that memory has no room for: read in pieces, and written to a file in order.

Only what one look at each row decides can be done so. Tables of several sources, ranges, which nest, calls recorded
twice, and values that no capture can hold are left to those who see the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from traceviz.parsers.nsys.calls import CALLS, Neighbours
from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.parsers.shared.events.column_requests import NotPlainError
from traceviz.parsers.shared.events.mapping import Source
from traceviz.parsers.shared.events.prescan import present
from traceviz.parsers.shared.events.reader import EventReader, Piece
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.plausible import LARGEST_SUM, checked
from traceviz.trace.spill import Spill, TooDisorderedError

PIECE_ROWS = 1 << 20
"""Rows of one piece: 82 MB of kernels, three times that while they are sorted."""
_SUMMED = ("dur_ns", "bytes")
_EVERYWHERE = frozenset({"start_ns", "dur_ns", "process_id", "thread_id", "device_id", "name"})


def spilled(spill: Spill, name: str, sources: tuple[Source, ...], events: EventReader, look: Look) -> bool:
    """Whether table ``name`` had no room in memory, and went to a file.

    Args:
        spill: Where it goes.
        name: Name of the table.
        sources: Where its rows come from.
        events: What reads them; its notes are those of this table alone, and are void where it did not go.
        look: Takes more notes of each piece.
    """
    there = list(present(events.raw, sources))
    rows = events.rows.get(name, 0)
    if name == "nvtx" or len(there) != 1 or spill.has_room(rows * _bytes_of_row(name, there[0])):
        return False
    pieces = events.pieces(name, there[0], schema.table(name).arrow, -(-rows // PIECE_ROWS))
    try:
        spill.write(name, _looked_at(name, pieces, look))
    except (NotPlainError, TooDisorderedError):
        return False
    return True


Look = Callable[[pa.Table], None]


def _bytes_of_row(name: str, source: Source) -> int:
    """Bytes of a row, of the columns that the source may have."""
    known = _EVERYWHERE | {column.name for column in source.columns}
    kinds = [column.type for column in schema.table(name).columns if column.name in known]
    return sum(4 if pa.types.is_dictionary(kind) else kind.bit_width // 8 for kind in kinds)


def _looked_at(name: str, pieces: Iterator[Piece], look: Look) -> Iterator[Piece]:
    """The same pieces.

    Raises:
        NotPlainError: only who sees the whole table can tell what is to be left out.
    """
    neighbours = Neighbours()
    total = 0.0
    for piece, first_later in pieces:
        total += sum(pc.sum(piece[column].cast(pa.float64())).as_py() or 0 for column in _summed(piece))
        ((_, kept),) = checked(iter([(name, piece)]))
        if kept is not piece or total > LARGEST_SUM or (name == CALLS and neighbours.are_in(piece)):
            raise NotPlainError("rows that may have to be left out")
        look(piece)
        made = [piece]
        del piece, kept
        yield made.pop(), first_later


def _summed(piece: pa.Table) -> list[str]:
    return [column for column in _SUMMED if column in piece.column_names]


def merged(notes: Notes) -> Notes:
    """The notes of several pieces as those of one table."""
    counts: dict[tuple[str, str, str], int | None] = {}
    for code, severity, count, message in notes.rows:
        before = counts.get((code, severity, message))
        counts[code, severity, message] = count if before is None or count is None else before + count
    return Notes([(code, severity, count, message) for (code, severity, message), count in counts.items()])
