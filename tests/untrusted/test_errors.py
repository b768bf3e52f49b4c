"""Errors of libraries and the system, in the words of traceviz."""

import csv
import decimal
import gzip
import json
import lzma
import sqlite3
import struct
import tarfile
import zipfile
import zlib

import adbc_driver_manager
import duckdb
import msgspec
import polars as pl
import pyarrow as pa
import pytest
import zstandard
from google.protobuf.message import DecodeError

from traceviz.core.errors import DamagedTraceError, OutOfMemoryError, OutputError, UnreadableError, UsageError
from traceviz.untrusted.errors import defect, foreign_errors_in_words, in_our_words

WHAT = "t.sqlite cannot be read."
ADBC = adbc_driver_manager.OperationalError("disk", status_code=adbc_driver_manager.AdbcStatusCode.IO)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OverflowError("int too big"), "A number in it is too large: int too big."),
        (RecursionError("maximum"), "It is nested too deeply: maximum."),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"), "A text in it is not valid Unicode: 'utf-8' codec"),
        (EOFError(), "It ends too early."),
        (csv.Error("field larger"), "It is no valid CSV: field larger."),
        (decimal.InvalidOperation("quantize"), "A number in it cannot be computed with: quantize."),
        (duckdb.ConversionException("'a\nb'"), "DuckDB refuses it: 'a␊b'."),
        (DecodeError("wire type"), "It is no valid protobuf message: wire type."),
        (json.JSONDecodeError("comma", "{", 1), "It is no valid JSON: comma: line 1 column 2 (char 1)."),
        (msgspec.ValidationError("Expected int"), "It is no valid JSON: Expected int."),
        (pl.exceptions.ComputeError("overflow"), "Polars refuses it: overflow."),
        (pl.exceptions.PanicException("unwrap"), "Polars refuses it: unwrap."),
        (pa.ArrowInvalid("page"), "Arrow refuses it: page."),
        (pa.ArrowKeyError("name"), "Arrow refuses it: name."),
        (OSError("Couldn't deserialize thrift."), "Couldn't deserialize thrift."),  # as in Arrow's message
        (sqlite3.OperationalError("malformed \x1b[2J"), "SQLite refuses it: malformed ␛[2J."),
        (ADBC, "SQLite refuses it: disk."),
        (struct.error("8 bytes"), "It ends within a number: 8 bytes."),
        (lzma.LZMAError("corrupt"), "Its compressed data is damaged: corrupt."),
        (zlib.error("distance"), "Its compressed data is damaged: distance."),
        (zstandard.ZstdError("frame"), "Its compressed data is damaged: frame."),
        (gzip.BadGzipFile("Not a gzipped file"), "Not a gzipped file."),
        (tarfile.ReadError("header"), "Its packed files are damaged: header."),
        (zipfile.BadZipFile("magic"), "Its packed files are damaged: magic."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_of_a_library_says_what_why_and_what_to_do(error, why):
    ours = in_our_words(error, WHAT)
    assert (type(ours), ours.what, ours.exit_code) == (DamagedTraceError, WHAT, 3)
    assert ours.why.startswith(why)
    assert ours.fix == "Copy or record it again."


@pytest.mark.parametrize(
    ("error", "kind", "why"),
    [
        (MemoryError(), OutOfMemoryError, "It needs more memory than there is."),
        (pa.ArrowMemoryError("malloc"), OutOfMemoryError, "It needs more memory than there is."),
        (PermissionError(13, "Permission denied", "t.sqlite"), UnreadableError, "Permission denied."),
        (FileNotFoundError(2, "No such file", "/a\x1b"), UnreadableError, "No such file: /a␛."),
        (OSError(28, "No space left on device", "/d/tmp"), OutputError, "No space left on device, in /d/tmp."),
    ],
)
def test_the_system_is_at_fault_where_it_is(error, kind, why):
    ours = in_our_words(error, WHAT)
    assert (type(ours), ours.why, ours.exit_code) == (kind, why, 3)


@pytest.mark.parametrize(
    "error", [KeyError("k"), ValueError("v"), TypeError("t"), AssertionError(), ZeroDivisionError(), SystemExit(1)]
)
def test_what_no_trace_may_cause_is_left_alone(error):
    assert in_our_words(error, WHAT) is None
    with pytest.raises(type(error)) as caught, foreign_errors_in_words(WHAT):
        raise error
    assert caught.value is error


def test_the_first_error_stays_the_cause_and_ours_pass_unchanged():
    first, own = OverflowError("big"), UsageError("what")
    with pytest.raises(DamagedTraceError) as caught, foreign_errors_in_words(WHAT):
        raise first
    assert caught.value.__cause__ is first
    with pytest.raises(UsageError) as caught, foreign_errors_in_words("Another."), foreign_errors_in_words(WHAT):
        raise own
    assert caught.value is own


def test_a_defect_is_told_by_type_and_place_and_quotes_nothing():
    with pytest.raises(TypeError) as caught:
        in_our_words(KeyError("secret"), None + "")  # the innermost function is of this file, which is not ours
    assert defect(caught.value) == "TypeError at an unknown place"
    with pytest.raises(TypeError) as caught:
        UsageError.unknown("metric", "a", None)
    assert defect(caught.value).rstrip("0123456789") == "TypeError at traceviz.core.errors:"
