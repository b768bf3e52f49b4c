"""Names of events as a profiler stored them: bytes or ids of strings, which are decoded once each."""

from __future__ import annotations

import pyarrow as pa

from traceviz.parsers.shared.arrow import Array, StringArray, pc
from traceviz.parsers.shared.raw import RawTables

UNKNOWN = "[unknown]"
"""Name of an event whose name is null, or whose id has no string."""


def decode(values: Array) -> StringArray:
    """Binary ``values`` as strings; bytes that are not UTF-8 become U+FFFD."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if v is None else v.decode("utf-8", "replace") for v in values.to_pylist()], pa.string())


def look_up(raw: RawTables, ids: Array) -> StringArray:
    """The string of each of the distinct ``ids``; null where there is none."""
    table = raw.strings(ids).combine_chunks()
    found = pc.index_in(ids, value_set=table["id"].combine_chunks())
    return decode(table["value"].combine_chunks()).take(found)


def stripped(words: StringArray, ending: str) -> StringArray:
    """``words`` without the regular expression ``ending``."""
    return pc.replace_substring_regex(words, ending, "") if ending else words
