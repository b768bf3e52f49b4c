"""The report of nsys, or the imported stream of an nsys that was ended; and the export of the report."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from pathlib import Path

from traceviz.collectors.base import Problem
from traceviz.collectors.program.companion_process import may_have_begun
from traceviz.core.nsys_program import Nsys, find_importer, run_quietly
from traceviz.core.sanitize import without_paths
from traceviz.untrusted.sqlite import foreign_database

REPORT, STREAM, LOG, TEMPORARY = "report.nsys-rep", "report.qdstrm", "nsys.log", "tmp"

REFUSED = "nsys-refused"
"""Code of the problem that nsys did not accept its flags: another try would fail in the same way."""

_PATIENCE_S = 10.0
"""Time to wait for a killed nsys: its helper may still write the report."""
_LAST_LINE = 300


def find_report(folder: Path, nsys: Nsys | None) -> tuple[Path | None, tuple[Problem, ...]]:
    """Return the report that nsys left, else its imported stream, else the stream itself; and the problems."""
    report, stream = folder / REPORT, folder / STREAM
    partial = _rescue_stream(folder)
    complete = next((path for path in (report, report.with_suffix(".qdrep")) if path.is_file()), None)
    if complete is not None:
        return complete, ()
    if not stream.is_file():
        return None, (explain_no_report(folder),)
    trouble = _import(nsys, stream, report) if nsys is not None else "there is no nsys."
    cut = (Problem("nsys-ended-early", "nsys ended before its report was complete: its end is missing."),) * partial
    if not trouble:
        return report, cut
    kept = Problem("nsys-stream-only", f"nsys left only its raw stream, {STREAM}, which is kept: {trouble}")
    return stream, (*cut, kept)


def _rescue_stream(folder: Path) -> bool:
    """Move the stream of an nsys that was ended out of its temporary folder; return whether there was one."""
    temporary = folder / TEMPORARY
    end = time.monotonic() + _PATIENCE_S
    while True:
        files = [path for path in temporary.glob("*.qdstrm") if path.is_file()]
        streams = sorted(files, key=lambda path: path.stat().st_size)
        if not streams or time.monotonic() >= end or (folder / REPORT).exists():
            break
        sizes = [stream.stat().st_size for stream in streams if stream.exists()]
        time.sleep(0.5)
        if not _is_busy(streams) and sizes == [stream.stat().st_size for stream in streams if stream.exists()]:
            break
    if not streams or (folder / REPORT).exists() or (folder / STREAM).exists():
        return False
    streams[-1].replace(folder / STREAM)
    return True


def _is_busy(streams: list[Path]) -> bool:
    """Return whether some process still has one of ``streams`` open."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # the process has just ended, or belongs to another user
            if link.readlink() in streams:
                return True
    return False


def _import(nsys: Nsys, stream: Path, report: Path) -> str:
    """Make the report of a stream; return why that failed, else an empty text."""
    importer = find_importer(nsys.path)
    if importer is None:
        return "QdstrmImporter, a part of the nsys package, is missing."
    command = [str(importer), "-i", str(stream.absolute()), "-o", str(report.absolute())]
    outcome = run_quietly(command, stream.parent, "nsys import", _silent)
    if outcome.status == 0 and report.is_file():
        return ""
    report.unlink(missing_ok=True)
    return f"QdstrmImporter says: {outcome.last_words}"


def export_report(nsys: Nsys, report: Path) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Export the report, next to it: later machines may have no nsys, or one that is too old for it."""
    folder = nsys.export_type == "parquetdir"
    output = report.with_name(f"{report.stem}.{'parquetdir' if folder else 'sqlite'}")
    unfinished = output.with_name(f"{output.name}.tmp")
    outcome = run_quietly(nsys.export_command(report, unfinished), report.parent, "nsys export", _silent)
    if outcome.status == 0 and _is_complete(unfinished):
        _remove(output)  # an export that the user requested with --export
        unfinished.replace(output)
        return (output,), ()
    _remove(unfinished)
    fix = f"Try: nsys export --type sqlite {report.name}"
    return (), (Problem("nsys-not-exported", f"{report.name} cannot be exported: {outcome.last_words}", fix),)


def _is_complete(exported: Path) -> bool:
    """Return whether the export is complete: nsys may exit with 0 and leave half of one. Every export has texts."""
    if exported.is_dir():
        return (exported / "StringIds.parquet").exists()
    if not exported.exists() or exported.with_name(f"{exported.name}-journal").exists():
        return False
    try:
        with foreign_database(exported) as database:
            return bool(database.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'StringIds'").fetchone()[0])
    except (sqlite3.DatabaseError, OSError):
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)


def _silent(stage: str, done: int, total: int) -> None:
    """Show no progress: the program uses the terminal."""


def messages(folder: Path) -> list[str]:
    """Return the lines that nsys wrote, without paths and progress bars."""
    try:
        lines = (folder / LOG).read_text(encoding="utf-8", errors="replace").replace("\r", "\n").splitlines()
    except OSError:
        return []
    return [line[:_LAST_LINE] for text in lines if (line := without_paths(text)) and "%" not in line]


def explain_no_report(folder: Path) -> Problem:
    """Return the problem that there is no report, with the message of nsys."""
    said = messages(folder)
    if any(line.startswith("usage:") for line in said):
        return Problem(
            REFUSED,
            f"nsys did not start the program: {said[0]}",
            "Mend --nsys-args; nsys profile --help lists its flags.",
        )
    message = f"It said: {said[-1]}" if said else "It said nothing: it was probably killed."
    left = "left no report" if may_have_begun(folder) else "did not start the program, and left no report"
    return Problem("no-report", f"nsys {left}. {message}", "nsys status --environment says what this machine allows.")
