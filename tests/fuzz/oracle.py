"""Required results of an input: a report, or an error of ours. Anything else is a fault.

Each of these functions processes an input as a user would, and returns one word for the result: ``report``,
``tables``, or the class of the error.
"""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from click.testing import CliRunner

from tests.conftest import REPOSITORY
from tests.fuzz import rules
from tests.fuzz.cases import Depth
from traceviz.analyses.run import analyze
from traceviz.api import compare, open_trace, to_text
from traceviz.cli.main import main
from traceviz.core.errors import TracevizError
from traceviz.doctor.doctor import examine_trace
from traceviz.doctor.doctor import to_text as doctor_text
from traceviz.parsers.registry import identify
from traceviz.parsers.shared.arrays.native import SCANNER_VARIABLE
from traceviz.parsers.sources import source_facts
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.render.options import RenderOptions
from traceviz.report import SCHEMA, Report
from traceviz.scrub import scrub
from traceviz.trace.tables import TraceTables

MOST_LINES = 45
"""Maximum lines of a first screen of 100 columns, with any contents."""
TWINS = frozenset({"kineto", "tf-trace-json", "xplane"})
"""Formats that are read by compiled code and, without it, by Python."""
EXIT_CODES = frozenset({0, 2, 3, 4})
"""1 besides where an archive is verified: something is wrong with it."""
LONGEST_ERROR = 4000
"""Characters of an error on a terminal: about 2,000 of each of its parts, and the lines around them."""


@dataclass(frozen=True)
class Fault(Exception):  # noqa: N818 (what was found, in the words of these tests)
    """A rule that an input broke.

    Args:
        kind: ``defect``, ``rule``, ``twin``, ``control``, ``long``, ``warning``, ``timeout``, ``memory``, ``signal``.
        what: What happened, without what differs from input to input.
        place: Place in traceviz, if known.
        detail: Everything else.
    """

    kind: str
    what: str
    place: str = ""
    detail: str = ""


def fault_of(error: BaseException) -> Fault:
    """Return the fault of an uncaught exception, and the innermost function of traceviz that it passed."""
    if isinstance(error, Fault):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    not_ours, ours_in = ("/tests/fuzz/", "site-packages"), ("/traceviz/", "/parsers/", "/collectors/")
    ours = [
        frame
        for frame in frames
        if any(part in frame.filename for part in ours_in) and not any(part in frame.filename for part in not_ours)
    ]
    inner = ours[-1] if ours else frames[-1]
    file = Path(inner.filename)
    file = file.relative_to(REPOSITORY) if file.is_relative_to(REPOSITORY) else Path(*file.parts[-2:])
    place = f"{file}:{inner.name}"
    kind = "warning" if isinstance(error, Warning) else "defect"
    return Fault(kind, type(error).__name__, place, "".join(traceback.format_exception(error))[-6000:])


def examine(path: Path, depth: Depth) -> str:
    """Read a trace, and report on it."""
    try:
        tables = open_trace(path)
    except TracevizError as error:
        return _refused(path, error, depth)
    _hold(rules.broken_tables(tables, stated=isinstance(identify(path), TracevizFolderReader)))
    _check_twin(path, tables)
    outcome = "tables"
    if depth.is_new(_looks(tables)) or depth.reports or depth.whole:
        outcome = _report(path, tables, every=depth.whole)
    if depth.whole:
        check_command(["report", str(path), "--width", "80"])
        check_command(["doctor", str(path)])
        output = path.with_name("output")
        if check_command(["convert", str(path), "-o", str(output)]) == 0:
            check_command(["report", str(output)])
        clean = path.with_name(f"clean{path.suffix}")
        if check_command(["scrub", str(path), "-o", str(clean)]) == 0:
            check_command(["report", str(clean)])
        check_command(["compare", str(path), str(path)])
    return outcome


def _refused(path: Path, error: TracevizError, depth: Depth) -> str:
    """Check that an error of ours prints harmless and short text; return its class."""
    name = _named(error)
    shape = hash((name, error.what[-40:], error.fix[:40], not error.what.isprintable(), len(str(error)) > 2000))
    if depth.whole or depth.is_new(shape):
        check_command(["report", str(path)])
    with _portable():
        if depth.random.random() < 0.3:
            try:
                open_trace(path)
            except TracevizError:
                pass
            else:
                raise Fault("twin", "only the compiled reader refuses it", detail=str(error))
    return name


def _named(error: TracevizError) -> str:
    """Return the class of an error of ours, and of the foreign error that it wraps, if it is a general one."""
    is_general = error.what.endswith(("cannot be read.", "cannot be analysed."))
    cause = type(error.__cause__).__name__ if is_general and error.__cause__ is not None else ""
    return f"{type(error).__name__} of {cause}" if cause else type(error).__name__


def _report(path: Path, tables: TraceTables, *, every: bool) -> str:
    try:
        report = analyze(tables)
    except TracevizError as error:
        return _named(error)
    report = replace(report, run=(*source_facts([path]), *report.run))
    check_report(report, every=every)
    check_page(doctor_text(examine_trace(tables, path.name)), "doctor")
    return "report"


def check_report(report: Report, *, every: bool = True, ours: bool = True) -> None:
    """Check that the rules hold for a report, and that its formats are harmless.

    Args:
        report: The report.
        every: All formats, and not only those that people look at.
        ours: True if it was made just now: its figures then add up.
    """
    if ours:
        _hold(rules.broken_report(report))
    for name in ("terminal", "markdown", "csv", "github", "junit") if every else ("terminal", "markdown"):
        check_page(to_text(report, name, RenderOptions()), name)
        check_page(first := to_text(report, name, RenderOptions(first_screen=True)), f"first screen, {name}")
        lines = first.count("\n")
        if name == "terminal" and lines > MOST_LINES and report.schema == SCHEMA:
            raise Fault("rule", f"the first screen has {lines} lines")
    json.loads(to_text(report, "json"), parse_constant=_no_number)


def _no_number(word: str) -> None:
    raise Fault("rule", f"the JSON report holds {word}")


def check_page(text: str, what: str) -> None:
    """Check that no character of a page controls a terminal."""
    found = rules.hostile_characters(text.replace("\r\n", "\n") if what == "csv" else text)
    if found:
        raise Fault("control", f"{what} holds {found}", detail=text[:2000])


def check_command(arguments: list[str]) -> int:
    """Check that a command ends with a right exit code, and prints nothing hostile.

    Raises:
        Fault: it did not.
    """
    result = CliRunner().invoke(main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    name = " ".join(arguments[:2]) if arguments[0] == "archive" else arguments[0]
    if "Traceback (most recent call last)" in result.stderr:
        raise Fault("defect", f"{name} prints a traceback", detail=result.stderr[:4000])
    if result.exit_code not in EXIT_CODES | ({1} if name == "archive verify" else set()):
        raise Fault("defect", f"{name} ends with {result.exit_code}", _where(result.stderr), result.stderr[:4000])
    check_page(result.stderr, f"error of {name}")
    if not arguments[-1].endswith(".json"):
        check_page(result.stdout, f"page of {name}")
    if result.exit_code and len(result.stderr) > LONGEST_ERROR:
        raise Fault(
            "long", f"the error of {name} is of more than {LONGEST_ERROR} characters", detail=result.stderr[:2000]
        )
    return result.exit_code


def _where(text: str) -> str:
    """Return the place of a defect from a message."""
    found = re.search(r"(\w+ at traceviz[\w.]+):\d+", text)
    return found[1] if found else ""


def check_comparison(base: Path, other: Path) -> str:
    """Compare two traces or saved reports."""
    try:
        compared = compare(base, other)
        for name in ("terminal", "json"):
            check_page(to_text(compared, name), f"{name} of compare")
    except TracevizError as error:
        return type(error).__name__
    return "comparison"


def check_scrubbed(path: Path, output: Path) -> str:
    """Write a trace without its secrets."""
    try:
        scrub(path, output)
    except TracevizError as error:
        return type(error).__name__
    return "scrubbed"


# --- tables -----------------------------------------------------------------------------------------------------------


def _hold(sentences: Iterator[str]) -> None:
    found = list(sentences)
    if found:
        what = " ".join("N" if part.strip(",.[]-{}").replace(".", "").isdigit() else part for part in found[0].split())
        raise Fault("rule", what[:150], detail="\n".join(found[:20]))


def _looks(tables: TraceTables) -> int:
    """Return a number that differs for tables of different kinds: names, with or without rows, and notes."""
    codes = sorted({note["code"] for note in tables.arrow("notes").to_pylist()})
    span = tables.run_facts().get("span_ns") or 0
    return hash(str(([(name, tables.rows(name) > 0) for name in tables], codes, span.bit_length() // 16)))


@contextmanager
def _portable() -> Iterator[None]:
    """Read without compiled code."""
    before = os.environ.get(SCANNER_VARIABLE)
    os.environ[SCANNER_VARIABLE] = "protobuf"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SCANNER_VARIABLE]
        else:
            os.environ[SCANNER_VARIABLE] = before


def _check_twin(path: Path, tables: TraceTables) -> None:
    """Check that Python reads the same as compiled code."""
    if identify(path).format not in TWINS:
        return
    with _portable():
        try:
            twin = open_trace(path)
        except TracevizError as error:
            raise Fault("twin", "only the portable reader refuses it", detail=str(error)) from error
    if set(twin) != set(tables):
        raise Fault("twin", f"tables {sorted(set(twin) ^ set(tables))} are read by one reader only")
    for name in tables:
        for column in tables.arrow(name).column_names:
            ours, theirs = (_plain(_compared(name, each).column(column)) for each in (tables, twin))
            if (name, column) != ("run", "reader") and not ours.equals(theirs) and str(ours) != str(theirs):
                detail = f"compiled {ours.to_pylist()[:20]}\nportable {theirs.to_pylist()[:20]}"
                raise Fault("twin", f"{name}.{column} differs", detail=detail)


def _compared(name: str, tables: TraceTables) -> pa.Table:
    """Return a table without the note that names its reader."""
    table = tables.arrow(name)
    return table.filter(pc.not_equal(table["code"], "slow-reader")) if name == "notes" else table


def _plain(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return the column without dictionaries, and with one value for all that are no numbers."""
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), 12345.678, column)
    return column
