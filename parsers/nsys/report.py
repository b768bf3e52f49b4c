"""Reader of Nsight Systems reports (``.nsys-rep``, ``.qdrep``) and raw streams (``.qdstrm``), through installed nsys.

nsys leaves a raw stream if it does not find its importer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from traceviz.core import nsys_program
from traceviz.core.errors import DamagedTraceError, MissingToolError
from traceviz.core.nsys_program import OVERRIDE, Outcome
from traceviz.core.process.temporary import temporary_folder
from traceviz.parsers.base import HEAD_BYTES, ReadRequest
from traceviz.parsers.nsys.mapping import STRINGS
from traceviz.parsers.nsys.parquetdir import ParquetTables
from traceviz.parsers.nsys.sniff import is_sqlite_export
from traceviz.parsers.nsys.sqlite import NsysSqliteTables
from traceviz.parsers.nsys.tables import Provenance, read_tables
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.untrusted.windows import windows

_BUILD = re.compile(rb"20\d\d\.\d{1,4}\.\d{1,4}\.\d{1,9}-[0-9a-f]{7}")
_LONGEST_BUILD = 64
_HEADER_VERSION = re.compile(rb"(?:Profiler Report|System Stream) (20\d\d[@.]\d{1,4}[@.]\d{1,4}[@.]\d{1,9})")


def read_report(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a report, from a new export; if nsys is missing or too old, from one next to the report."""
    nsys = nsys_program.find_nsys()
    try:
        if nsys is None:
            raise _missing_nsys(path)
        with temporary_folder() as folder:
            raw = _export(nsys, path, folder, options)
            yield from _read_export(raw, nsys, path, options, "nsys-rep")
    except MissingToolError as error:
        export = path.with_suffix(".sqlite")
        if not export.is_file():
            raise
        with export.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if not is_sqlite_export(head, export):
            raise
        notes = (("sqlite-beside-report", "info", f"Read from {export.name} beside the report. {error.why}"),)
        provenance = Provenance("nsys sqlite beside the report", recorded_version(path), notes)
        with NsysSqliteTables(export) as beside:
            yield from read_tables(beside, options, provenance)


def read_stream(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a stream: import it into a report in a temporary folder, then export the report."""
    importer, nsys = nsys_program.find_importer(), nsys_program.find_nsys()
    if importer is None or nsys is None:
        version = recorded_version(path)
        tool = "nsys" if nsys is None else "QdstrmImporter, a part of the nsys package,"
        raise MissingToolError(
            f"{path.name} is a raw stream of Nsight Systems{f' {version}' if version else ''}.",
            f"Reading it takes {tool} which is not installed here.",
            f"Where it is: QdstrmImporter -i {path.name} (in the host-linux-x64 folder of the nsys package), then "
            f"nsys export --type sqlite {path.with_suffix('.nsys-rep').name}.",
        )
    with temporary_folder() as folder:
        report = folder / "imported.nsys-rep"
        command = [str(importer), "-i", str(path.absolute()), "-o", str(report)]
        outcome = nsys_program.run_quietly(command, folder, "nsys import", options.progress)
        if outcome.status != 0 or not report.is_file():
            raise _failure(path, outcome)
        raw = _export(nsys, report, folder, options)
        yield from _read_export(raw, nsys, path, options, "nsys-qdstrm, QdstrmImporter")


def exporter() -> str | None:
    """Return the installed nsys, as ``run.reader`` names it after an export; ``None`` if there is none.

    Raises:
        MissingToolError: ``TRACEVIZ_NSYS`` does not name a program.
    """
    nsys = nsys_program.find_nsys()
    return None if nsys is None else _describe_exporter(nsys)


def _describe_exporter(nsys: nsys_program.Nsys) -> str:
    return f"nsys export --type={nsys.export_type} (nsys {nsys.version})"


def _export(nsys: nsys_program.Nsys, report: Path, folder: Path, options: ReadRequest) -> RawTables:
    """Export ``report`` into ``folder`` and open the result.

    Neither the exit status nor the presence of a file is trusted: nsys sometimes fails with 0, or leaves half an
    export.

    Raises:
        MissingToolError: a newer nsys recorded the report.
        DamagedTraceError: nsys fails, or its output is incomplete.
    """
    output = folder / f"export.{nsys.export_type}"
    command = nsys.export_command(report, output)
    outcome = nsys_program.run_quietly(command, folder, "nsys export", options.progress)
    if outcome.too_old:
        raise MissingToolError(
            f"{report.name} was recorded by Nsight Systems {recorded_version(report) or 'of a newer version'}.",
            f"The installed nsys {nsys.version} is too old to read it.",
            _advise_export_elsewhere(report),
        )
    if outcome.status != 0 or not output.exists() or output.with_name(output.name + "-journal").exists():
        raise _failure(report, outcome)
    try:
        raw: RawTables = ParquetTables(output) if output.is_dir() else NsysSqliteTables(output)
    except DamagedTraceError as error:
        raise _failure(report, outcome) from error
    if STRINGS not in raw.names:
        raw.close()
        raise _failure(report, outcome)
    return raw


def _read_export(
    raw: RawTables, nsys: nsys_program.Nsys, source: Path, options: ReadRequest, route: str
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of ``raw``, a new export of ``source``; close it afterwards."""
    with raw:
        provenance = Provenance(f"{route}, {_describe_exporter(nsys)}", recorded_version(source))
        yield from read_tables(raw, options, provenance)


def recorded_version(path: Path) -> str | None:
    """Return the version of the nsys that recorded a report or stream, from its bytes.

    Reports since 2024 and streams state it in their first line; older reports contain it with the hash of its build.
    """
    with path.open("rb") as file:
        header = _HEADER_VERSION.search(file.read(256))
    if header:
        return header[1].decode().replace("@", ".")
    for content, _ in windows(path, _LONGEST_BUILD):
        if build := _BUILD.search(content):
            return build[0].split(b"-")[0].decode()
    return None


def _missing_nsys(report: Path) -> MissingToolError:
    version = recorded_version(report)
    return MissingToolError(
        f"{report.name} is an Nsight Systems report" + (f" of version {version}." if version else "."),
        "Reading it takes nsys, which is not installed here.",
        _advise_export_elsewhere(report),
    )


def _advise_export_elsewhere(report: Path) -> str:
    output = report.with_suffix(".sqlite").name
    return (
        f"Where a newer or equal nsys is installed: nsys export --type sqlite --output {output} {report.name}; then "
        f"give {output} to traceviz. An nsys that is not on PATH can be named in {OVERRIDE}."
    )


def _failure(report: Path, outcome: Outcome) -> DamagedTraceError:
    """Return the error for a failed nsys, or one with incomplete output."""
    if outcome.status == 0 and not outcome.output.strip():
        reason = "nsys ended without an error and wrote no complete export: is it really nsys?"
    else:
        reason = f"nsys says: {outcome.last_words}"
    return DamagedTraceError(
        f"{report.name} cannot be exported.",
        reason,
        "If other reports can be read, this file is damaged: copy it again.",
    )
