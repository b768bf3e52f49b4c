"""Reader of traces of ACME: a first line ``# acme 1``, then ``name,start_ns,dur_ns`` of one kernel per line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.plugins import DamagedTraceError, Match, Reader, ReadRequest

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC = b"# acme 1\n"


class AcmeReader(Reader):
    """Files that start with ``# acme 1``."""

    format: ClassVar[str] = "acme"
    title: ClassVar[str] = "ACME kernel trace"
    suffixes: ClassVar[tuple[str, ...]] = (".acme",)

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (the content decides)
        """Recognise the first line."""
        return Match.YES if head.startswith(_MAGIC) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """Yield the tables of the trace; see :mod:`traceviz.trace.schema` for their columns.

        Raises:
            DamagedTraceError: a line does not have three values.
        """
        from traceviz.plugins import rows_to_table  # noqa: PLC0415 (recognising a file loads no pyarrow)

        rows = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()[1:], 2):
            try:
                name, start, duration = line.rsplit(",", 2)
                times = {"start_ns": int(start), "dur_ns": int(duration)}
            except ValueError:
                raise DamagedTraceError(f"{path}, line {number}, is not name,start_ns,dur_ns.") from None
            rows.append({"name": name, **times, "device_id": 0, "process_id": 0, "stream": 0})
        first = min((row["start_ns"] for row in rows), default=0)
        for row in rows:
            row["start_ns"] -= first  # times count from the start of the capture
        span = max((row["start_ns"] + row["dur_ns"] for row in rows), default=0)
        run = {"format": self.format, "producer": "ACME", "reader": "acme-traceviz", "span_ns": span}
        yield "run", rows_to_table("run", [run])
        yield "devices", rows_to_table("devices", [{"device_id": 0, "kind": "gpu", "ordinal": 0}])
        yield "processes", rows_to_table("processes", [{"process_id": 0}])
        yield "threads", rows_to_table("threads", [])
        if options.wants("kernels"):
            yield "kernels", rows_to_table("kernels", rows)
        yield "notes", rows_to_table("notes", [])
