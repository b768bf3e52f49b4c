"""Texts for notebooks: values in a few lines, and the content of a trace as a table."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from traceviz.core.sanitize import sentence
from traceviz.core.units import counted
from traceviz.report import SCHEMA, Column, Fact, Grid, Report
from traceviz.trace import schema

if TYPE_CHECKING:
    from traceviz.archive.archive import Archive
    from traceviz.collectors.collect import Outcome
    from traceviz.notebook.recording import Recorded
    from traceviz.trace.tables import TraceTables

_FINDINGS = 3
_NAMED_TABLES = 12
_RUN = (("producer", "recorded by"), ("framework", "framework"), ("span_ns", "captured"))


def report_lines(report: Report, name: str = "report") -> tuple[str, ...]:
    """Return the verdict, the first findings by name, and how to see the rest."""
    found = [f"{finding.code} {finding.slug}" for finding in report.findings[:_FINDINGS]]
    more = len(report.findings) - len(found)
    findings = f"Findings: {', '.join(found)}{f' and {more} more' if more else ''}." if found else ""
    tables = f" {name}.to_pandas(SECTION) has the rows of a table." if report.schema == SCHEMA else ""
    how = f"print(traceviz.to_text({name})) shows all of its {counted(len(report.sections), 'section')}.{tables}"
    return tuple(filter(None, (sentence(report.verdict.sentence), findings, how)))


def table_lines(tables: TraceTables) -> tuple[str, ...]:
    """Count the tables and rows, and describe how to read one."""
    named = [f"{name} {tables.rows(name):,}" for name in tables if tables.rows(name)]
    listed = ", ".join(named[:_NAMED_TABLES]) + (f" and {len(named) - _NAMED_TABLES} more" if named[12:] else "")
    return (
        f"Trace of {counted(len(list(tables)), 'table')}; rows: {listed or 'none'}.",
        "tables.NAME is a polars LazyFrame, tables.to_pandas(NAME) a frame of pandas.",
        "traceviz.analyze(tables) makes the report.",
    )


def run_of(tables: TraceTables) -> tuple[Fact, ...]:
    """Return the facts that the trace states about its run."""
    stated = tables.run_facts()
    known = {column.name: column for column in schema.table("run").columns}
    return tuple(
        Fact(key, label, stated[key], "ns" if known[key].unit == "ns" else "text")
        for key, label in _RUN
        if key in known and stated.get(key) is not None
    )


def tables_of(tables: TraceTables) -> Grid:
    """List the tables of a trace with the meaning of their rows."""
    columns = (Column("table", "Table"), Column("rows", "Rows", "count"), Column("holds", "What a row is"))
    rows = tuple((name, tables.rows(name), schema.table(name).row) for name in tables)
    return Grid(columns, rows, complete=True)


def empty_archive(archive: Archive) -> tuple[str, ...]:
    """Describe an archive that does not exist yet."""
    return repr(archive), "There is no archive there yet: archive.add(PATH, ...) makes it."


def outcome_lines(outcome: Outcome) -> tuple[str, ...]:
    """Return the verdict of the recording, its folder and its problems."""
    how = f"{outcome.status}, exit code {outcome.exit_code}" if outcome.exit_code else outcome.status
    problems = (f"{problem.message} {problem.fix}".strip() for problem in outcome.problems)
    return (*outcome.verdict, f"The program {how}; the run is in {where(outcome.folder)}.", *problems)


def recorded_lines(recorded: Recorded) -> tuple[str, ...]:
    """Return the folder of a recorded cell, and its problems."""
    folder = where(recorded.folder)
    said = f"Recorded into {folder}: traceviz report {folder}, or traceviz.analyze({folder!r})."
    return (said, *recorded.problems)


def where(folder: Path) -> str:
    """Return a folder ready to type in a shell, relative to the current folder if it is below that."""
    here = Path.cwd()
    return shlex.quote(str(folder.relative_to(here) if folder.is_relative_to(here) else folder))
