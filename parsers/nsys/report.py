"""Reader of Nsight Systems reports, ``.nsys-rep`` and ``.qdrep``, through the installed ``nsys export``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from traceviz.core import nsys_program
from traceviz.core.errors import DamagedTraceError, MissingToolError
from traceviz.core.process.temporary import temporary_folder
from traceviz.parsers.base import HEAD_BYTES, ReadRequest
from traceviz.parsers.nsys import tool as nsys_tool
from traceviz.parsers.nsys.constants import STRINGS
from traceviz.parsers.nsys.parquetdir import ParquetTables
from traceviz.parsers.nsys.sniff import is_sqlite_export
from traceviz.parsers.nsys.sqlite import NsysSqliteTables
from traceviz.parsers.nsys.tables import Provenance, read_tables
from traceviz.parsers.shared.events.source_tables import RawTables

STAGE = "nsys export"


def read_report(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a report, from a new export; if nsys is missing or too old, from one next to the report."""
    nsys = nsys_program.find_nsys()
    try:
        if nsys is None:
            raise nsys_tool.missing_nsys(path)
        with temporary_folder() as folder:
            raw = exported(nsys, path, folder, options)
            yield from read_export(raw, nsys, path, options, "nsys-rep")
    except MissingToolError as error:
        yield from _read_beside(path, options, error)


def exporter() -> str | None:
    """Return the installed nsys, as ``run.reader`` names it after an export; ``None`` if there is none.

    Raises:
        MissingToolError: ``TRACEVIZ_NSYS`` does not name a program.
    """
    nsys = nsys_program.find_nsys()
    return None if nsys is None else _named(nsys)


def _named(nsys: nsys_program.Nsys) -> str:
    return f"nsys export --type={nsys.export_type} (nsys {nsys.version})"


def exported(nsys: nsys_program.Nsys, report: Path, folder: Path, options: ReadRequest) -> RawTables:
    """Export ``report`` into ``folder`` and open the result.

    Neither the exit status nor the presence of a file is trusted: nsys sometimes fails with 0, or leaves half an
    export.

    Raises:
        MissingToolError: a newer nsys recorded the report.
        DamagedTraceError: nsys fails, or its output is incomplete.
    """
    output = folder / f"export.{nsys.export_type}"
    outcome = nsys_program.run_quietly(nsys.export_command(report, output), folder, STAGE, options.progress)
    if outcome.too_old:
        raise nsys_tool.too_old(report, nsys)
    if outcome.status != 0 or not output.exists() or output.with_name(output.name + "-journal").exists():
        raise nsys_tool.failed(report, outcome)
    try:
        raw: RawTables = ParquetTables(output) if output.is_dir() else NsysSqliteTables(output)
    except DamagedTraceError as error:
        raise nsys_tool.failed(report, outcome) from error
    if STRINGS not in raw.names:
        raw.close()
        raise nsys_tool.failed(report, outcome)
    return raw


def read_export(
    raw: RawTables, nsys: nsys_program.Nsys, source: Path, options: ReadRequest, route: str
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of ``raw``, a new export of ``source``; close it afterwards."""
    with raw:
        yield from read_tables(raw, options, Provenance(f"{route}, {_named(nsys)}", nsys_tool.recorded_version(source)))


def _read_beside(report: Path, options: ReadRequest, error: MissingToolError) -> Iterator[tuple[str, pa.Table]]:
    """Read the SQLite export next to ``report``; without one, raise ``error``."""
    export = report.with_suffix(".sqlite")
    if not export.is_file():
        raise error
    with export.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not is_sqlite_export(head, export):
        raise error
    message = f"Read from {export.name} beside the report. {error.why}"
    notes = (("sqlite-beside-report", "info", message),)
    with NsysSqliteTables(export) as raw:
        yield from read_tables(
            raw, options, Provenance("nsys sqlite beside the report", nsys_tool.recorded_version(report), notes)
        )
