"""Event tables that do not fit in memory: read in pieces, and written to a file in order.

This works only if each row can be checked on its own. It excludes tables of several sources, ranges, which nest, calls
recorded twice, and values that no capture can hold.
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
"""Rows of one piece: 82 MB of kernels, three times that during the sort."""
_SUMMED = ("dur_ns", "bytes")
_EVERYWHERE = frozenset({"start_ns", "dur_ns", "process_id", "thread_id", "device_id", "name"})


def spill_table(spill: Spill, name: str, sources: tuple[Source, ...], events: EventReader, look: Look) -> bool:
    """Return whether table ``name`` did not fit in memory, and went to a file.

    Args:
        spill: Destination of the table.
        name: Name of the table.
        sources: Sources of its rows.
        events: Reader of the events; its notes are those of this table alone, and are void if the table was not
            spilled.
        look: Takes more notes of each piece.
    """
    present_sources = list(present(events.raw, sources))
    if name == "nvtx" or len(present_sources) != 1:
        return False
    rows, source = events.rows.get(name, 0), present_sources[0]
    columns = _EVERYWHERE | {column.name for column in source.columns}  # those that the source may have
    kinds = [column.type for column in schema.table(name).columns if column.name in columns]
    row_bytes = sum(4 if pa.types.is_dictionary(kind) else kind.bit_width // 8 for kind in kinds)
    if spill.has_room(rows * row_bytes):
        return False
    pieces = events.pieces(name, source, schema.table(name).arrow, -(-rows // PIECE_ROWS))
    try:
        spill.write(name, _check_pieces(name, pieces, look))
    except (NotPlainError, TooDisorderedError):
        return False
    return True


Look = Callable[[pa.Table], None]


def _check_pieces(name: str, pieces: Iterator[Piece], look: Look) -> Iterator[Piece]:
    """Yield the same pieces, checked.

    Raises:
        NotPlainError: rows may have to be left out, which requires the whole table.
    """
    neighbours = Neighbours()
    total = 0.0
    for piece, first_later in pieces:
        summed = [piece[column].cast(pa.float64()) for column in _SUMMED if column in piece.column_names]
        total += sum(pc.sum(column).as_py() or 0 for column in summed)
        ((_, kept),) = checked(iter([(name, piece)]))
        if kept is not piece or total > LARGEST_SUM or (name == CALLS and neighbours.are_in(piece)):
            raise NotPlainError("rows that may have to be left out")
        look(piece)
        made = [piece]
        del piece, kept, summed  # hold no reference here, so that the caller can free the piece
        yield made.pop(), first_later


def merge_notes(notes: Notes) -> Notes:
    """Merge the notes of several pieces into those of one table."""
    counts: dict[tuple[str, str, str], int | None] = {}
    for code, severity, count, message in notes.rows:
        before = counts.get((code, severity, message))
        counts[code, severity, message] = count if before is None or count is None else before + count
    return Notes([(code, severity, count, message) for (code, severity, message), count in counts.items()])
