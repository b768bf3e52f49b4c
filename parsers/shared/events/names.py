"""Names of events: integers while they stream, strings once all rows are read.

A capture with millions of rows has hundreds of different names. Each batch is dictionary-encoded by id. At the end the
dictionaries are unified, the ids are looked up, and only the distinct names are cleaned and decoded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array, ChunkedArray, StringArray, chunked_array, pc
from traceviz.parsers.shared.events.source_tables import RawTables

UNKNOWN = "[unknown]"
"""Name of an event without a name, or with an id that has no string."""


def decode(values: Array) -> StringArray:
    """Return binary ``values`` as strings; bytes that are not UTF-8 become U+FFFD."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if v is None else v.decode("utf-8", "replace") for v in values.to_pylist()], pa.string())


def look_up(raw: RawTables, ids: Array) -> StringArray:
    """Return the string of each of the distinct ``ids``; null if there is none."""
    table = raw.strings(ids).combine_chunks()
    positions = pc.index_in(ids, value_set=table["id"].combine_chunks())
    return decode(table["value"].combine_chunks()).take(positions)


def name_column(
    parts: Sequence[ChunkedArray], words: Sequence[StringArray], rows: Array | None = None
) -> tuple[ChunkedArray, int]:
    """Return the column of names, each from the first of ``parts`` that has one, as a dictionary of distinct names.

    ::

        text:  "step"  null   null        words of the ids 3 and 9: "forward" and none
        id:    null    3      9
        name:  "step"  "forward"  "[unknown]"

    Args:
        parts: Dictionary-encoded columns with equal chunks, each chunk of a part with the same dictionary.
        words: For each part, the string of each entry of its dictionary; null if there is none.
        rows: Number of rows that each row of the only chunk stands for; ``None`` if always one.

    Returns:
        The column (``dictionary<int32, string>``, no nulls) and the number of rows without a name.
    """
    encoded = chunked_array(words, pa.string()).combine_chunks().dictionary_encode()
    offsets = np.cumsum([0, *map(len, words)])
    codes = [encoded.indices.slice(offset, len(entries)) for offset, entries in zip(offsets, words, strict=False)]
    known: list[Array] = []
    for index in range(parts[0].num_chunks):
        stated = [code.take(part.chunk(index).indices) for code, part in zip(codes, parts, strict=True)]
        known.append(pc.coalesce(*stated))
    if rows is None:
        missing = sum(chunk.null_count for chunk in known)
    else:
        missing = sum(pc.sum(rows.filter(chunk.is_null())).as_py() or 0 for chunk in known)
    names, unknown = encoded.dictionary, 0
    if missing:
        unknown = names.index(UNKNOWN).as_py()
        if unknown < 0:
            names, unknown = pa.concat_arrays([names, pa.array([UNKNOWN])]), len(names)
    filled = (chunk.fill_null(unknown) if chunk.null_count else chunk for chunk in known)
    chunks = [pa.DictionaryArray.from_arrays(chunk, names) for chunk in filled]
    return chunked_array(chunks, pa.dictionary(pa.int32(), pa.string())), missing


def count_rows(column: ChunkedArray, flags: Array) -> int:
    """Count rows of a dictionary column whose entry is flagged. All chunks of the column have the same dictionary."""
    return sum(pc.sum(flags.take(chunk.indices)).as_py() or 0 for chunk in column.chunks)
