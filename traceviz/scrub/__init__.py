"""Removing secrets and personal data from a trace, so that it can be shared.

A new trace is built from what is known to be harmless; what was found to be secret in the source is then looked for
in everything that was written. What stays: every number, and the names of kernels, ranges and functions.
"""

from __future__ import annotations

from pathlib import Path

from traceviz.errors import DamagedTraceError, UnknownFormatError
from traceviz.files import check_folder_free, check_not_source, new_file, new_folder
from traceviz.parsers.registry import identify
from traceviz.parsers.run_folder import TABLES
from traceviz.parsers.run_manifest import is_run_folder
from traceviz.parsers.xplane_reader import XPlaneReader
from traceviz.scrub.database import MAGIC, scrub_database
from traceviz.scrub.folder import scrub_folder
from traceviz.scrub.result import ScrubReport, listed
from traceviz.scrub.xplane import scrub_xplane
from traceviz.tables import is_trace_folder

__all__ = ["ScrubReport", "scrub"]

_REPORT_MAGIC = (b"NVIDIA Tegra Profiler Report", b"QDSTRM")
_REPORT_SUFFIXES = (".nsys-rep", ".qdrep", ".qdstrm")


def scrub(source: Path, output: Path, *, force: bool = False) -> ScrubReport:
    """Write a copy of ``source`` without environment, command line, host, user, paths, captured output and the like.

    Args:
        source: An nsys SQLite export, an XPlane file, a traceviz folder, or the tables in a run folder. It is only
            read.
        output: The file or folder to create. It appears complete and verified, or not at all.
        force: Replace an existing ``output``.

    Returns:
        What was removed, and how many bytes were searched for how many secrets.

    Raises:
        UnknownFormatError: ``source`` is nothing that can be rewritten; for ``.nsys-rep`` the error says what to do.
        DamagedTraceError: ``source`` does not exist, or breaks the rules of its format.
        OutputExistsError: ``output`` exists, and ``force`` is false.
        OutputError: ``output`` cannot be written, or a secret would have stayed in it.
    """
    if not source.exists():
        raise DamagedTraceError(f"{source} does not exist.")
    check_not_source(source, output)
    if source.is_dir():
        return _scrub_folder(source, output, force=force)
    is_xplane = _format_of(source) == XPlaneReader.format
    if not is_xplane:
        _check_database(source)
    with new_file(output, force=force) as temporary:
        removed, secrets, size = (scrub_xplane if is_xplane else scrub_database)(source, temporary)
    return ScrubReport(output, listed(removed), secrets, size)


def _scrub_folder(source: Path, output: Path, *, force: bool) -> ScrubReport:
    if is_run_folder(source) and is_trace_folder(source / TABLES):
        source /= TABLES  # what the profilers wrote stays behind, and so does the manifest
    if not is_trace_folder(source):
        raise UnknownFormatError(
            f"{source} is a folder, but not one that traceviz wrote.",
            "It has no manifest.json of a trace.",
            "Scrub a file (an nsys SQLite export, an .xplane.pb), or convert first: traceviz convert TRACE -o DIR.",
        )
    check_folder_free(output, force=force, replaceable=is_trace_folder)
    with new_folder(output, force=force, replaceable=is_trace_folder) as temporary:
        removed, secrets, size = scrub_folder(source, temporary)
    return ScrubReport(output, listed(removed), secrets, size)


def _format_of(source: Path) -> str | None:
    """Identifier of the format of a file; ``None`` where it is none that can be read."""
    try:
        return identify(source).format
    except UnknownFormatError:
        return None


def _check_database(source: Path) -> None:
    """Raise unless ``source`` begins like a SQLite database in UTF-8."""
    try:
        with source.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise DamagedTraceError(f"{source} cannot be read.", str(error)) from error
    if head.startswith(_REPORT_MAGIC) or (source.suffix in _REPORT_SUFFIXES and not head.startswith(MAGIC)):
        raise UnknownFormatError(
            f"{source} is a report of Nsight Systems, which only Nsight Systems itself can write.",
            "scrub rewrites SQLite exports, XPlane files and traceviz folders.",
            f"First run: nsys export --type sqlite -o out.sqlite {source}   or: traceviz convert {source} -o DIR",
        )
    if not head.startswith(MAGIC):
        raise UnknownFormatError(
            f"{source} is neither a SQLite database nor an XPlane file nor a traceviz folder.",
            "These are what scrub can write again.",
            "Convert another trace first, and scrub that: traceviz convert TRACE -o DIR.",
        )
    if head[56:60] not in (b"\0\0\0\0", b"\0\0\0\1"):  # text encoding of the database; nsys writes UTF-8 only
        raise DamagedTraceError(f"{source} stores its texts in UTF-16, which nsys never does.", "Nothing was written.")
