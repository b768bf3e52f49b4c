"""Changes of Parquet files: their cells, their columns, how they are encoded; their bytes, and those of the footer."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.mutations import nasty
from tests.fuzz.mutations.octets import spoil

_TYPES = (
    *(pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.large_string()),
    *(pa.binary(), pa.bool_(), pa.timestamp("ns"), pa.date32(), pa.duration("us"), pa.decimal128(38, 5)),
    *(
        pa.list_(pa.int64()),
        pa.struct([("a", pa.int64())]),
        pa.dictionary(pa.int8(), pa.string()),
        pa.binary(4),
        pa.null(),
    ),
)
_FAULTS = (pa.ArrowException, OSError, ValueError, OverflowError, UnicodeError)


def change(random: Random, path: Path) -> None:
    """Change the table in a file once; change its bytes if it cannot be read or written."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
        table = _changed(random, table)
        pq.write_table(
            table,
            path,
            compression=random.choice(("none", "zstd", "snappy", "gzip")),
            use_dictionary=random.random() < 0.5,
            row_group_size=random.choice((1, 7, 1 << 20)),
            data_page_version=random.choice(("1.0", "2.0")),
            store_schema=random.random() < 0.7,
        )
    except _FAULTS:
        path.write_bytes(spoil(random, path.read_bytes()))


def _changed(random: Random, table: pa.Table) -> pa.Table:
    if not table.num_columns:
        return table
    place = random.randrange(table.num_columns)
    name = table.column_names[place]
    column = table.column(place)
    match random.randrange(14):
        case 0:
            return table.remove_column(place)
        case 1:  # two columns of one name
            return table.append_column(name, column)
        case 2:
            names = list(table.column_names)
            names[place] = random.choice((name.upper(), nasty.text(random), random.choice(names)))
            return table.rename_columns(names)
        case 3:
            return table.slice(0, random.choice((0, 1, table.num_rows // 2)))
        case 4:
            return pa.concat_tables([table] * random.choice((2, 5)))
        case 5:
            return table.set_column(place, name, pa.nulls(table.num_rows, random.choice(_TYPES)))
        case 6 | 7:
            return table.set_column(place, name, _cast(column, random.choice(_TYPES)))
        case 8:
            return table.replace_schema_metadata({b"ARROW:schema": nasty.text(random), b"pandas": b"{", b"x": b"\xff"})
        case _:
            return table.set_column(place, name, _cells(random, column))


def _cast(column: pa.ChunkedArray[Any], kind: pa.DataType) -> Any:
    try:
        return column.cast(kind, safe=False)
    except _FAULTS:
        return pa.nulls(len(column), kind)


def _cells(random: Random, column: pa.ChunkedArray[Any]) -> Any:
    """Return the column with other values in one row or in all."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    values = column.cast(kind).to_pylist()
    rows = range(len(values)) if random.random() < 0.4 or not values else [random.randrange(len(values))]
    for row in rows:
        values[row] = _value(random, kind, values[row])
    try:
        return pa.array(values, kind)
    except _FAULTS:
        return pa.array([None] * len(values), kind)


def _value(random: Random, kind: pa.DataType, given: Any) -> Any:
    if random.random() < 0.15:
        return None
    if pa.types.is_integer(kind):
        width = kind.bit_width
        return max(min(nasty.integer(random), 2 ** (width - 1) - 1), -(2 ** (width - 1)))
    if pa.types.is_floating(kind):
        return random.choice((0.0, -1.5, 1e308, -1e308, float("nan"), float("inf"), -float("inf"), 5e-324, 1e18))
    if pa.types.is_boolean(kind):
        return random.random() < 0.5
    text = nasty.spoilt_text(random, str(given or ""))
    return text.encode("utf-8", "surrogatepass") if pa.types.is_binary(kind) else text


def spoil_footer(random: Random, path: Path) -> None:
    """Change some bytes of the description at the end of the file, or its length."""
    data = path.read_bytes()
    if len(data) < 12:
        path.write_bytes(spoil(random, data))
        return
    length = min(struct.unpack("<I", data[-8:-4])[0], len(data) - 8)
    begin = len(data) - 8 - length
    if random.random() < 0.2:
        wrong = random.choice((0, 1, length - 1, length + 1, 2**31 - 1, 2**32 - 1)) % 2**32
        path.write_bytes(data[:-8] + struct.pack("<I", wrong) + data[-4:])
        return
    footer = bytearray(data[begin:-8])
    for _ in range(random.choice((1, 1, 3))):
        if footer:
            footer[random.randrange(len(footer))] = random.choice((0, 1, 0x15, 0x7F, 0x80, 0xFF, random.randrange(256)))
    path.write_bytes(data[:begin] + bytes(footer) + data[-8:])
