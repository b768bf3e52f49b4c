"""Arrow's types and functions, typed for the readers.

The published stubs of pyarrow lag behind it: they reject Python numbers as arguments of compute functions and know no
dictionaries of columns. The wrong parts are typed here once, as ``Any``, instead of being silenced on each line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from traceviz.core.lazy_module import Later

pc: Any = Later("pyarrow.compute")
"""Compute functions, which accept arrays, chunked arrays and Python numbers."""

nulls: Any = pa.nulls
"""An array of nulls of any type."""
chunked_array: Any = pa.chunked_array
"""A chunked array of any type, dictionaries included."""

if TYPE_CHECKING:
    Array = Any
    ChunkedArray = Any
    DictionaryArray = Any
    StringArray = Any
else:
    Array = pa.Array
    ChunkedArray = pa.ChunkedArray
    DictionaryArray = pa.DictionaryArray
    StringArray = pa.StringArray
