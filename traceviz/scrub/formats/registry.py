"""Registry of the formats that scrub can rewrite, and the secrets of any source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from traceviz.core.errors import TracevizError, UnknownFormatError
from traceviz.parsers.kineto.readers import KinetoReader
from traceviz.parsers.nsys.readers import NsysSqliteReader
from traceviz.parsers.nvprof.readers import NvprofSqliteReader
from traceviz.parsers.registry import identify
from traceviz.parsers.rocprof.readers import RocprofJsonReader
from traceviz.parsers.run.readers import StacksReader
from traceviz.parsers.xplane.readers import TensorFlowTraceReader, XPlaneReader
from traceviz.scrub.formats.documents import scrub_json_file, secrets_of_json_file
from traceviz.scrub.formats.json_trace import scrub_json_trace, secrets_of_json_trace
from traceviz.scrub.formats.nsys_sqlite import scrub_database, secrets_of_database
from traceviz.scrub.formats.nvprof import scrub_nvprof, secrets_of_nvprof
from traceviz.scrub.formats.stacks import scrub_stacks, secrets_of_stacks
from traceviz.scrub.formats.xplane import scrub_xplane, secrets_of_xplane
from traceviz.scrub.result import Outcome
from traceviz.scrub.secrets.secrets import secrets_of_arguments, secrets_of_text, secrets_of_variable
from traceviz.scrub.secrets.values import Secret
from traceviz.untrusted.errors import foreign_errors_in_words
from traceviz.untrusted.windows import windows


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of files that can be rewritten.

    Args:
        format: Identifier, as used by readers.
        secrets: Returns the secrets of a file.
        scrub: Writes a scrubbed copy of a file. Its arguments are the source (only read), the target, and secrets found
            in other files. It raises :class:`DamagedTraceError` if the source violates its format, and
            :class:`OutputError` if a secret would remain in the target.
    """

    format: str
    secrets: Callable[[Path], Iterable[Secret]]
    scrub: Callable[[Path, Path, Iterable[Secret]], Outcome]


FILE_FORMATS = {
    file.format: file
    for file in (
        FileFormat(KinetoReader.format, secrets_of_json_trace, scrub_json_trace),
        FileFormat(NsysSqliteReader.format, secrets_of_database, scrub_database),
        FileFormat(NvprofSqliteReader.format, secrets_of_nvprof, scrub_nvprof),
        FileFormat(RocprofJsonReader.format, secrets_of_json_trace, scrub_json_trace),
        FileFormat(StacksReader.format, secrets_of_stacks, scrub_stacks),
        FileFormat(TensorFlowTraceReader.format, secrets_of_json_trace, scrub_json_trace),
        FileFormat(XPlaneReader.format, secrets_of_xplane, scrub_xplane),
    )
}
_OWN_FILE = FileFormat("document", secrets_of_json_file, scrub_json_file)
REPORT_SUFFIXES = (".nsys-rep", ".qdrep", ".qdstrm")
"""Suffixes of Nsight Systems reports."""
_EXPORT = ".sqlite"
_OWN_SUFFIXES = (".json", ".jsonl")


def format_of(path: Path) -> str | None:
    """Return the identifier of the format of a file or folder; ``None`` if it is not readable by traceviz."""
    try:
        return identify(path).format
    except UnknownFormatError:
        return None


def file_format(path: Path) -> FileFormat | None:
    """Return how a file is rewritten; ``None`` if it cannot be."""
    known = FILE_FORMATS.get(format_of(path) or "")
    if known is None and path.name.endswith(_OWN_SUFFIXES):
        return _OWN_FILE  # descriptions and notes of collectors; a file that is not JSON is refused there
    return known


def secrets_of_reports_beside(path: Path) -> Iterator[Secret]:
    """Yield the secrets of the report next to its export ``path``. Only the report has the command line.

    Raises:
        OSError: the report cannot be read.
    """
    if path.suffix == _EXPORT:
        for report in (path.with_suffix(suffix) for suffix in REPORT_SUFFIXES):
            if report.is_file() and not report.is_symlink():
                yield from secrets_of_bytes(report)


def secrets_of_file(path: Path) -> Iterator[Secret]:
    """Yield the secrets of a file; if it is damaged or cannot be rewritten, the secrets in its bytes.

    Raises:
        OSError: the file cannot be read.
    """
    file = file_format(path)
    try:
        with foreign_errors_in_words(f"{path} cannot be read."):
            yield from file.secrets(path) if file else secrets_of_bytes(path)
    except TracevizError:
        yield from secrets_of_bytes(path)


# The bytes of a file that is damaged or cannot be rewritten ----------------------------------------------------------
#
# A report of Nsight Systems holds the environments of processes in the system's form (NUL-separated ``NAME=value``),
# and the command line with one field of a message per argument:
#
#     Z 10 --password  Z 10 hunter2-zz  Z 6 --data ...        tag of the field, length, text

_VARIABLE = re.compile(rb"(?<=[\0\n])([A-Za-z_][A-Za-z0-9_]{1,127})=([^\0]{1,65536})(?=\0)")
_TEXT = re.compile(rb"[\x20-\x7e]{6,4096}")
_OPTION = re.compile(rb"Z[\x02-\xff][\x01-\x7f]?--?[A-Za-z]")
_TAG = b"Z"
_MOST_ARGUMENTS = 10_000
_LONGEST = 1 << 20
"""Maximum length in bytes of a variable or command line that is found as a whole."""
_MOST_TEXT = 64 << 20
"""Bytes that are searched for home folders, tokens and addresses. Beyond them, only variables are searched."""


def secrets_of_bytes(path: Path) -> Iterator[Secret]:
    """Yield the secrets in the raw bytes of a file.

    Raises:
        OSError: the file cannot be read.
    """
    looked_at = 0
    for content, is_last in windows(path, _LONGEST):
        whole = len(content) if is_last else len(content) - _LONGEST
        for name, value in _VARIABLE.findall(content):
            yield from secrets_of_variable(name, value)
        for option in _OPTION.finditer(content, 0, whole):
            yield from secrets_of_arguments(_arguments(content, option.start()))
        if looked_at < _MOST_TEXT:
            for text in {match[0] for match in _TEXT.finditer(content) if is_last or match.end() < len(content)}:
                yield from secrets_of_text(text)
        looked_at += len(content)


def _arguments(content: bytes, place: int) -> list[bytes]:
    """Return the option whose field starts at ``place``, and the arguments up to the next option."""
    arguments: list[bytes] = []
    while content[place : place + 1] == _TAG and len(arguments) < _MOST_ARGUMENTS:
        size, shift, place = 0, 0, place + 1
        for byte in content[place : place + 3]:
            size |= (byte & 0x7F) << shift
            shift, place = shift + 7, place + 1
            if byte < 0x80:
                break
        argument = content[place : place + size]
        if arguments and argument.startswith(b"-"):
            break
        arguments.append(argument)
        place += size
    return arguments
