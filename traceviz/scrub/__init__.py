"""Removal of secrets and personal data from a trace, so that it can be shared.

A new trace is built from the parts that are known to be harmless. All output is then searched for the secrets of the
source. Numbers are kept, as are the names of kernels, ranges and functions.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from traceviz.core.errors import DamagedTraceError, UnknownFormatError
from traceviz.core.files import check_file_free, check_not_source, new_file, new_folder
from traceviz.parsers.nsys.readers import NsysParquetReader
from traceviz.parsers.rocprof.readers import RocprofCsvReader, RocprofSqliteReader
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.scrub.formats.nsys_parquet import scrub_nsys_parquet, secrets_of_nsys_parquet
from traceviz.scrub.formats.nsys_sqlite import scrub_database
from traceviz.scrub.formats.recordings import scrub_recordings, secrets_of_recordings
from traceviz.scrub.formats.registry import (
    FILE_FORMATS,
    REPORT_SUFFIXES,
    format_of,
    secrets_of_file,
    secrets_of_reports_beside,
)
from traceviz.scrub.formats.sqlite_copy import MAGIC
from traceviz.scrub.formats.tables import scrub_folder, scrub_tables, secrets_of_folder, secrets_of_tables
from traceviz.scrub.result import MANIFEST, ScrubReport, is_scrubbed_folder, listed
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.values import Secret
from traceviz.trace.trace_folder import is_trace_folder
from traceviz.untrusted.errors import foreign_errors_in_words
from traceviz.untrusted.regular_files import check_regular

__all__ = [
    "MANIFEST",
    "Redactor",
    "ScrubReport",
    "Secret",
    "scrub",
    "scrub_folder",
    "scrub_tables",
    "secrets_in",
    "secrets_of_tables",
]

_REPORT_MAGIC = (b"NVIDIA Tegra Profiler Report", b"QDSTRM")
_DATABASES = frozenset({"nsys-sqlite", "nvprof-sqlite"})
_NOT_WRITTEN = {RocprofCsvReader.format: "CSV", RocprofSqliteReader.format: "a database"}
_WHOLE = {TracevizFolderReader.format: scrub_folder, NsysParquetReader.format: scrub_nsys_parquet}
"""Folder formats that consist of the tables of one trace."""
_RECORDINGS = frozenset({"kineto", "resources", "run", "tf-trace-json", "xplane"})
"""Folder formats whose files are rewritten one by one."""


def secrets_in(source: Path) -> tuple[Secret, ...]:
    """Return the secrets of a trace of any format: values of its environment, arguments, users, hosts, home folders.

    This is for writers of files derived from ``source``, such as converted tables (see :func:`scrub_folder`).

    Args:
        source: A file or folder. It is only read. If it is damaged, its bytes are searched. For an export of Nsight
            Systems, the report next to it is read, too, as it has the command line.

    Raises:
        UnreadableError: the source cannot be opened.
    """
    with foreign_errors_in_words(f"{source} cannot be read."):
        if not source.is_dir():
            secrets = {*secrets_of_file(source), *secrets_of_reports_beside(source)}
        elif is_trace_folder(source):
            secrets = set(secrets_of_folder(source))
        elif format_of(source) == NsysParquetReader.format:
            secrets = set(secrets_of_nsys_parquet(source))
        else:
            secrets = set(secrets_of_recordings(source))
    return tuple(sorted(secrets, key=lambda secret: (secret.text, secret.certain)))


def scrub(source: Path, output: Path, *, force: bool = False) -> ScrubReport:
    """Write a copy of ``source`` without environment, command line, host, user, paths, captured output and the like.

    Kinds and counts of removed data are listed in ``scrubbed.json``: inside an output folder, or next to an output
    file, with the file's name as prefix.

    Args:
        source: An nsys SQLite or Parquet export, an nvprof database, an XPlane file, a JSON trace of PyTorch,
            TensorFlow or JAX, a traceviz folder, a run folder, or a folder of such files. It is only read.
        output: The file or folder to create. It appears complete and verified, or not at all.
        force: Replace an existing ``output``.

    Returns:
        The removed data, and the numbers of secrets and of searched bytes.

    Raises:
        UnknownFormatError: ``source`` cannot be rewritten; for ``.nsys-rep`` the error states a remedy.
        DamagedTraceError: ``source`` does not exist, or breaks the rules of its format.
        OutputExistsError: ``output`` exists, and ``force`` is false.
        OutputError: ``output`` cannot be written, or a secret would remain in it.
    """
    check_regular(source)
    if not source.exists():
        raise DamagedTraceError(f"{source} does not exist.")
    check_not_source(source, output)
    with foreign_errors_in_words(f"{source} cannot be scrubbed."):
        return (_scrub_folder if source.is_dir() else _scrub_file)(source, output, force=force)


def _scrub_file(source: Path, output: Path, *, force: bool) -> ScrubReport:
    file = FILE_FORMATS.get(format_of(source) or "")
    if file is None or file.format in _DATABASES:
        _check_database(source)
    try:
        known = tuple(secrets_of_reports_beside(source))
    except OSError as error:
        raise DamagedTraceError(f"The report beside {source} cannot be read.", f"{error.strerror or error}.") from error
    check_file_free(output, force=force)
    with ExitStack() as files:
        manifest = files.enter_context(new_file(output.with_name(f"{output.name}.{MANIFEST}"), force=force))
        temporary = files.enter_context(new_file(output, force=force))  # the output appears first
        removed, secrets, size = (file.scrub if file else scrub_database)(source, temporary, known)
        report = ScrubReport(output, listed(removed), secrets, size)
        report.save(manifest)
    return report


def _scrub_folder(source: Path, output: Path, *, force: bool) -> ScrubReport:
    kind = format_of(source)
    if kind not in _WHOLE and kind not in _RECORDINGS:
        raise UnknownFormatError(
            f"{source} is a folder, but not one that traceviz wrote, nor one of traces that scrub can write again.",
            "" if kind is None else f"It is of the format {kind}.",
            "Scrub a file (an nsys SQLite export, an .xplane.pb), or convert first: traceviz convert TRACE -o DIR.",
        )

    def is_replaceable(folder: Path) -> bool:
        return is_trace_folder(folder) or is_scrubbed_folder(folder)

    with new_folder(output, force=force, replaceable=is_replaceable) as temporary:
        if kind in _WHOLE:
            removed, secrets, size = _WHOLE[kind](source, temporary)
            report = ScrubReport(output, listed(removed), secrets, size)
        else:
            removed, secrets, size, left_out = scrub_recordings(source, temporary)
            report = ScrubReport(output, listed(removed), secrets, size, tuple(left_out))
        report.save(temporary / MANIFEST)
    return report


def _check_database(source: Path) -> None:
    """Raise unless ``source`` starts like a SQLite database in UTF-8."""
    try:
        with source.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise DamagedTraceError(f"{source} cannot be read.", str(error)) from error
    if head.startswith(_REPORT_MAGIC) or (source.suffix in REPORT_SUFFIXES and not head.startswith(MAGIC)):
        raise UnknownFormatError(
            f"{source} is a report of Nsight Systems, which only Nsight Systems itself can write.",
            "scrub rewrites SQLite databases, XPlane files, JSON traces, run folders and traceviz folders.",
            f"First run: nsys export --type sqlite -o out.sqlite {source}   or: traceviz convert {source} -o DIR",
        )
    kind = format_of(source)
    if kind in _NOT_WRITTEN:
        raise UnknownFormatError(
            f"{source} is a recording of rocprof as {_NOT_WRITTEN[kind]}, which scrub cannot write again.",
            "Of rocprof's files it writes results.json.",
            "Convert it first, and scrub that: traceviz convert TRACE -o DIR.",
        )
    if not head.startswith(MAGIC):
        raise UnknownFormatError(
            f"{source} is neither a SQLite database nor an XPlane file, a JSON trace or a traceviz folder.",
            "These are what scrub can write again.",
            "Convert another trace first, and scrub that: traceviz convert TRACE -o DIR.",
        )
    if head[56:60] not in (b"\0\0\0\0", b"\0\0\0\1"):  # text encoding of the database; nsys writes UTF-8 only
        raise DamagedTraceError(f"{source} stores its texts in UTF-16, which nsys never does.", "Nothing was written.")
