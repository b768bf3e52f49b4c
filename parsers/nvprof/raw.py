"""The tables of an nvprof database, with integer columns.

nvprof stores CUPTI's activity records field by field. Two fields need a translation that mappings should not contain:
the owner of a record that names an object (``objectId``, 12 bytes whose meaning depends on ``objectKind``), and the
device of a migration of unified memory. Both appear here as ordinary columns, so later code uses only integer columns.

::

    objectId    | process id | thread id |      |    of a process or a thread, 4 bytes each, little-endian
                | device id  | context id | stream id |    of the others
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from traceviz.parsers.nvprof import constants
from traceviz.parsers.nvprof.constants import STRING_ID, STRINGS
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.events.mapping import Keep
from traceviz.parsers.shared.sqlite.tables import SqliteTables

if TYPE_CHECKING:
    from traceviz.parsers.shared.events.column_requests import WholeTable

MIGRATIONS = constants.PREFIX + "UNIFIED_MEMORY_COUNTER"
_OWNERS = frozenset({"processId", "threadId"})
_MIGRATED = frozenset({"counterKind", "srcId", "dstId"})


class NvprofTables(SqliteTables):
    """Tables of an nvprof database, opened read-only.

    Tables with ``objectId`` also have the integer columns ``processId`` and ``threadId`` (null if the object is
    neither), and the table of unified memory a ``deviceId``. Thread ids are unsigned.

    Raises:
        DamagedTraceError: the file is cut short, or its catalogue cannot be read.
    """

    string_table: ClassVar[str] = STRINGS
    string_id: ClassVar[str] = STRING_ID

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of ``table``, including derived ones."""
        stored = super().columns(table)
        if "objectId" in stored:
            return stored | _OWNERS
        # Counters of unified memory name the device at either end since CUDA 7; earlier ones have a "deviceId".
        return stored | {"deviceId"} if table == MIGRATIONS and stored >= _MIGRATED else stored

    def stream(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), keep: Keep | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of columns; see :meth:`RawTables.stream`."""
        stored = super().columns(table)
        derived = [name for name in integers if name not in stored]
        real = [name for name in integers if name in stored]
        if derived and "objectId" in stored:
            kind = ["objectKind"] if "objectKind" in stored else []
            for batch in super().stream(table, list(dict.fromkeys([*real, *kind])), [*texts, "objectId"], keep):
                yield _select({**_columns(batch), **_owners(batch)}, [*integers, *texts])
        elif derived:
            for batch in super().stream(table, list(dict.fromkeys([*real, *_MIGRATED])), texts, keep):
                # The device of a migration to the host is its source, otherwise its destination.
                to_host = pc.equal(batch["counterKind"], constants.DEVICE_TO_HOST)
                device = pc.if_else(to_host, batch["srcId"], batch["dstId"])
                yield _select({**_columns(batch), "deviceId": device}, [*integers, *texts])
        else:
            for batch in super().stream(table, integers, texts, keep):
                yield _select(_columns(batch), batch.schema.names) if "threadId" in integers else batch

    def whole(self, table: str) -> WholeTable | None:  # noqa: ARG002 (always None)
        """See :meth:`RawTables.whole`. Always ``None``: owners and thread ids are derived row by row."""
        return None

    def strings(self, ids: Array) -> pa.Table:
        """Return strings by id, without the id that stands for "no string". See :meth:`RawTables.strings`."""
        stored = super().columns(STRINGS) >= {STRING_ID, "value"}
        return super().strings(ids.filter(pc.not_equal(ids, constants.NO_NAME)) if stored else ids[:0])


def _columns(batch: pa.RecordBatch) -> dict[str, Array]:
    """Return the columns of ``batch`` by name, with unsigned thread ids."""
    columns: dict[str, Array] = dict(zip(batch.schema.names, batch.columns, strict=True))
    if "threadId" in columns:
        columns["threadId"] = pc.bit_wise_and(columns["threadId"], constants.THREAD_BITS)
    return columns


def _select(columns: dict[str, Array], names: Sequence[str]) -> pa.RecordBatch:
    distinct = list(dict.fromkeys(names))
    return pa.RecordBatch.from_arrays([columns[name] for name in distinct], names=distinct)


def _owners(batch: pa.RecordBatch) -> dict[str, Array]:
    """Return process and thread of each row, from the few distinct objects."""
    objects = batch["objectId"].dictionary_encode()
    # Two unsigned numbers of 4 bytes; missing bytes count as zero.
    raw = b"".join((value or b"")[:8].ljust(8, b"\0") for value in objects.dictionary.to_pylist())
    numbers = np.frombuffer(raw, "<u4").astype(np.int64).reshape(-1, 2)
    kinds = batch["objectKind"] if "objectKind" in batch.schema.names else pa.nulls(batch.num_rows, pa.int64())
    nothing = pa.scalar(None, pa.int64())
    is_thread = pc.fill_null(pc.equal(kinds, constants.OBJECT_THREAD), fill_value=False)
    is_process = pc.fill_null(pc.equal(kinds, constants.OBJECT_PROCESS), fill_value=False)
    process, thread = (pa.array(column).take(objects.indices) for column in (numbers[:, 0], numbers[:, 1]))
    return {
        "processId": pc.if_else(pc.or_(is_thread, is_process), process, nothing),
        "threadId": pc.if_else(is_thread, thread, nothing),
    }
