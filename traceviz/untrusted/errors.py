"""Conversion of errors that libraries and the system raise over a trace into errors of traceviz, in one place.

Any other error is a defect of traceviz, and is not converted. Libraries are known by name: none is imported for
errors that it has not raised.
"""

from __future__ import annotations

import errno
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from traceviz.core.errors import DamagedTraceError, OutOfMemoryError, OutputError, TracevizError, UnreadableError

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EMFILE, errno.ENFILE})
"""Errors of the system that the input does not cause: nothing can be written, or opened, any more."""
_DAMAGED = "Copy or record it again."
_MEMORY = "Free some memory, or use a machine that has more."
_REASONS = {
    "OverflowError": "A number in it is too large",
    "RecursionError": "It is nested too deeply",
    "UnicodeError": "A text in it is not valid Unicode",
    "EOFError": "It ends too early",
    "_csv.Error": "It is no valid CSV",
    "decimal.DecimalException": "A number in it cannot be computed with",
    "duckdb.Error": "DuckDB refuses it",
    "google.protobuf.message.Error": "It is no valid protobuf message",
    "json.decoder.JSONDecodeError": "It is no valid JSON",
    "msgspec.MsgspecError": "It is no valid JSON",
    "polars.exceptions.PolarsError": "Polars refuses it",
    "pyarrow.lib.ArrowException": "Arrow refuses it",
    "pyo3_runtime.PanicException": "Polars refuses it",
    "sqlite3.Error": "SQLite refuses it",
    "adbc_driver_manager.Error": "SQLite refuses it",
    "struct.error": "It ends within a number",
    "igzip_lib.IsalError": "Its compressed data is damaged",
    "lzma.LZMAError": "Its compressed data is damaged",
    "tarfile.TarError": "Its packed files are damaged",
    "zipfile.BadZipFile": "Its packed files are damaged",
    "zlib.error": "Its compressed data is damaged",
    "zstandard.ZstdError": "Its compressed data is damaged",
}
"""Reasons why a trace cannot be read, by error class with its module; they apply to derived classes, too."""
_PRIVATE_MODULES = {"_duckdb": "duckdb", "_lzma": "lzma", "zstandard.backend_c": "zstandard", "builtins": ""}


def in_our_words(error: BaseException, what: str) -> TracevizError | None:
    """Convert a foreign error into one of ours; ``None`` if a trace cannot cause it: a defect, an interruption.

    Args:
        error: The error that was raised.
        what: The failed action, as a sentence: ``run.sqlite cannot be read.``
    """
    if isinstance(error, MemoryError):
        return OutOfMemoryError(what, "It needs more memory than there is.", _MEMORY)
    if isinstance(error, OSError):
        return _of_the_system(error, what)
    for kind in type(error).__mro__:
        module = _PRIVATE_MODULES.get(kind.__module__, kind.__module__)
        reason = _REASONS.get(f"{module}.{kind.__qualname__}".lstrip("."))
        if reason is not None:
            message = str(error).strip().rstrip(".")
            return DamagedTraceError(what, f"{reason}: {message}." if message else f"{reason}.", _DAMAGED)
    return None


def _of_the_system(error: OSError, what: str) -> TracevizError:
    if error.errno is None:  # from a library, for damaged bytes
        return DamagedTraceError(what, f"{str(error).rstrip('.') or type(error).__name__}.", _DAMAGED)
    reason = error.strerror or str(error)
    if error.errno in NO_ROOM:
        where = error.filename or tempfile.gettempdir()
        return OutputError(what, f"{reason}, in {where}.", "Make room there, or set TMPDIR to another folder.")
    named = f": {error.filename}" if error.filename is not None and str(error.filename) not in what else ""
    return UnreadableError(what, f"{reason}{named}.", "Check that it is there, whole, and may be read.")


def defect(error: BaseException) -> str:
    """Describe an error that is a defect of traceviz, without its message, which may contain private data.

    The text is the type, with module and line of the innermost of our functions that it went through.
    """
    frames = ((str(frame.f_globals.get("__name__")), line) for frame, line in traceback.walk_tb(error.__traceback__))
    ours = [f"{module}:{line}" for module, line in frames if module.partition(".")[0] == "traceviz"]
    return f"{type(error).__name__} at {ours[-1] if ours else 'an unknown place'}"


@contextmanager
def foreign_errors_in_words(what: str) -> Iterator[None]:
    """Raise foreign errors of the block as ours; the first stays their cause.

    Args:
        what: The action that fails then, as a sentence: ``run.sqlite cannot be read.``

    Raises:
        DamagedTraceError: the input breaks the rules of its format, or those of its reader.
        UnreadableError: the system does not let it be read.
        OutOfMemoryError: it needs more memory than is available.
        OutputError: there is no room for temporary files.
    """
    try:
        yield
    except TracevizError:
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        ours = in_our_words(error, what)
        if ours is None:
            raise
        raise ours from error
