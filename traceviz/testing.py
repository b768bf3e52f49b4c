"""Contracts of readers, analyses, findings, renderers and collectors, as tests that plugins inherit.

>>> class TestAcmeReader(ReaderContract):
...     reader = AcmeReader()
...     samples = (Path("sample.acme"),)

pytest and unittest collect the methods that start with ``test_``; neither is imported here. The tests of traceviz
itself use the same classes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, cast

import pyarrow as pa

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.registry import Entry
from traceviz.analyses.run import analyze
from traceviz.collectors.base import Availability, Collector, Harvest, Plan
from traceviz.core.units import UNITS
from traceviz.parsers.base import HEAD_BYTES, Match, Reader, ReadRequest
from traceviz.render.options import Renderer, RenderOptions
from traceviz.report import (
    Bar,
    Bars,
    Column,
    Fact,
    Facts,
    Finding,
    Grid,
    Lane,
    Level,
    Note,
    Point,
    Prose,
    Report,
    Section,
    Series,
    Severity,
    Skipped,
    Timeline,
    Verdict,
)
from traceviz.report.findings.record import FindingRecord
from traceviz.report.findings.registry import record_of
from traceviz.report.verdicts import VerdictCode
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

__all__ = ["AnalysisContract", "CollectorContract", "FindingContract", "ReaderContract", "RendererContract"]

HEADS = (
    *(b"", b"\0", b"{", b"[]", b"PK\x03\x04", b"\x1f\x8b\x08\x00", b"SQLite format 3\0", b"\xff" * 100),
    *(b"name,start,dur\n", b"NVIDIA Nsight Systems was used here\n", "déjà vu\n".encode()),
)
"""Starts of files of no format: a reader may not fail on them."""
NO_TRACES = (b"", b"NVIDIA Nsight Systems was used here\n", "déjà vu\n".encode(), b"PK\x03\x04")
"""Starts of files that no reader may recognise as a trace."""
HOSTILE_NAMES = (
    "void k[/x]",
    "[bold]",
    "<script>alert(1)</script>",
    "a | b \\| c",
    "two\nlines\r\nand three",
    "nul\0bell\a tab\t",
    "x" * 10_000,
    "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "核函数" * 40,
    "\u202egnp.exe\u202c",
    "e\u0301" + "\u0300" * 500,
    "❤\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "`tick` ``two`` *star* _under_ # 1. - @someone #12 ~~no~~ &amp; $x$",
    "\u2028\u2029\x85\x0b\x0c\x1c",
    "\udcff lone surrogate",
    "void a::(anonymous namespace)::k<b::c<(int)4>, d>(e::f const*, (g)h)",
    "((((",
    ")",
    "",
    " ",
    "-",
)
"""Names that a program may give its kernels, and that have a meaning in a terminal, a page or a table."""


class ReaderContract:
    """Tests of a :class:`~traceviz.parsers.base.Reader`.

    Subclasses set the reader, and paths of traces that it reads.
    """

    reader: ClassVar[Any]
    samples: ClassVar[Sequence[Path]] = ()

    def test_it_has_a_stable_name_and_one_for_people(self) -> None:
        """Check the name, which ``--reader`` takes."""
        assert re.fullmatch(r"[a-z][a-z0-9-]*", self._reader.format), self._reader.format
        assert self._reader.title

    def test_any_start_of_a_file_has_an_answer(self) -> None:
        """Check that recognising a file never raises, for any bytes and any path."""
        for head in HEADS:
            for path in (Path("gone"), Path("nul\0inside"), Path("gone/file.json")):
                assert self._reader.sniff(head, path) in set(Match), head

    def test_other_files_are_no_traces(self) -> None:
        """Check that the reader does not recognise files of other formats, which it would take from other readers."""
        for head in NO_TRACES:
            assert self._reader.sniff(head, Path("gone/notes.txt")) == Match.NO, head

    def test_it_recognises_its_samples(self) -> None:
        """Check that it recognises them by their first bytes, not by their names."""
        for path in self.samples:
            assert self._reader.sniff(_head(path), path) != Match.NO, path

    def test_tables_follow_the_schema(self) -> None:
        """Check that columns, types and nulls are those of the schema, ``run`` has one row, and ``notes`` come last."""
        for path in self.samples:
            read = list(self._reader.tables(path, ReadRequest()))
            names = [name for name, _ in read]
            assert names[-1] == "notes", names
            assert len(set(names)) == len(names), names
            assert set(schema.REQUIRED) <= set(names), names
            assert dict(read)["run"].num_rows == 1
            for name, table in read:
                declared = schema.table(name).arrow
                assert table.schema.names == declared.names, name
                assert [field.type for field in table.schema] == [field.type for field in declared], name
                lacking = [f.name for f in declared if not f.nullable and table[f.name].null_count]
                assert not lacking, (name, lacking)

    def test_it_reads_only_the_tables_that_are_asked_for(self) -> None:
        """Check that only requested tables are made, and those that every trace has."""
        for path in self.samples:
            names = {name for name, _ in self._reader.tables(path, ReadRequest(frozenset()))}
            assert names == set(schema.REQUIRED), names

    @property
    def _reader(self) -> Reader:
        reader: Reader = self.reader
        return reader


class AnalysisContract:
    """Tests of an :class:`~traceviz.analyses.base.Analysis`.

    Subclasses set its declaration, and return a trace for which it makes a section.
    """

    entry: Entry

    def trace(self) -> TraceTables:
        """Return a trace with all that the analysis reads."""
        raise NotImplementedError

    def test_it_makes_its_section_with_its_slug(self) -> None:
        """Check that the slugs of the declaration, of the class and of the section are equal."""
        assert self._analysis.slug == self.entry.slug
        assert _section(self._analysis, self.trace()).slug == self.entry.slug

    def test_every_value_has_a_unit_and_every_ratio_a_bound(self) -> None:
        """Check units, and that ratios are from 0 to 1."""
        for block in _section(self._analysis, self.trace()).blocks:
            cells: list[tuple[str, Any]] = []
            if isinstance(block, Facts):
                cells = [(fact.unit, fact.value) for fact in block.facts]
            elif isinstance(block, Grid):
                cells = [(c.unit, v) for row in block.rows for c, v in zip(block.columns, row, strict=True)]
            for unit, value in cells:
                assert unit in UNITS, unit
                assert unit != "ratio" or value is None or 0 <= value <= 1 + 1e-12, value

    def test_tables_without_rows_are_no_error(self) -> None:
        """Check tables as a profiler that recorded nothing leaves them."""
        empty = TraceTables({name: schema.table(name).empty() for name in schema.TABLES})
        result = self._analysis.run(TraceView(empty))
        assert isinstance(result, Skipped) or self._analysis.describe(result).slug == self.entry.slug

    def test_it_is_skipped_if_a_needed_table_is_absent(self) -> None:
        """Check that it states the reason without running."""
        assert self.entry.missing(()) == self.entry.needs
        assert self.entry.missing(self.entry.tables) == ()
        assert set(self.entry.tables) <= set(schema.TABLES)

    def test_it_reads_only_the_tables_that_it_declares(self) -> None:
        """Check that no other tables are read from the file."""
        whole = self.trace()
        declared = {*self.entry.tables, *schema.REQUIRED}
        reduced = TraceTables({name: whole.arrow(name) for name in whole if name in declared})
        assert _section(self._analysis, reduced) == _section(self._analysis, whole)

    def test_it_reads_only_the_columns_that_it_declares(self) -> None:
        """Check that the other nullable columns may be null, in tables for which it declares columns."""
        whole = self.trace()
        reduced = {}
        for name in whole:
            table, declared = whole.arrow(name), self.entry.columns.get(name)
            for column in schema.table(name).columns if declared is not None else ():
                if column.nullable and column.name not in (declared or ()):
                    at = table.column_names.index(column.name)
                    table = table.set_column(at, table.schema.field(at), schema.nulls(table.num_rows, column.type))
            reduced[name] = table
        assert _section(self._analysis, TraceTables(reduced)) == _section(self._analysis, whole)

    def test_the_order_of_rows_changes_nothing(self) -> None:
        """Check that readers need not sort."""
        whole = self.trace()
        reversed_ = {
            name: whole.arrow(name).take(pa.array(range(whole.rows(name))[::-1], pa.int64())) for name in whole
        }
        assert _section(self._analysis, TraceTables(reversed_)) == _section(self._analysis, whole)

    def test_it_raises_only_findings_that_it_declares(self) -> None:
        """Check that ``traceviz explain`` knows each of them."""
        result = self._analysis.run(TraceView(self.trace()))
        assert not isinstance(result, Skipped), result
        assert {finding.code for finding in self._analysis.judge(result)} <= set(self._analysis.rules)
        assert all(record_of(code) for code in self._analysis.rules)

    def test_its_fields_are_thresholds(self) -> None:
        """Check that it is a frozen dataclass of numbers."""
        analysis: Any = self._analysis
        assert analysis.__dataclass_params__.frozen
        assert all(isinstance(getattr(analysis, field.name), int | float) for field in fields(analysis))

    def test_a_report_of_this_section_alone_has_it(self) -> None:
        """Check a report of this section alone."""
        report = analyze(self.trace(), sections=[self.entry.slug])
        assert [section.slug for section in report.sections] == [self.entry.slug]

    @property
    def _analysis(self) -> Analysis[Any]:
        return self.entry.load()


def _section(analysis: Analysis[Any], tables: TraceTables) -> Section:
    result = analysis.run(TraceView(tables))
    assert not isinstance(result, Skipped), result
    return analysis.describe(result)


class FindingContract:
    """Tests of the record of a finding."""

    record: FindingRecord

    def test_its_code_and_slug_name_the_problem(self) -> None:
        """Check that a code is capitals and a number, and a slug words with hyphens between them."""
        assert re.fullmatch(r"TV\d{3}|(?!TV)[A-Z]{2,8}\d{1,4}", self.record.code), self.record.code
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.record.slug), self.record.slug

    def test_every_heading_has_sentences(self) -> None:
        """Check that each text ends with a full stop, and is one paragraph."""
        for text in (self.record.what, self.record.why, self.record.misleads, *self.record.advice):
            assert len(text) >= len("Do something else.")
            assert text.endswith("."), text
            assert "\n" not in text, text
        assert self.record.advice
        assert all(reference.startswith("https://") for reference in self.record.references)

    def test_it_is_found_by_code_and_slug_in_any_case(self) -> None:
        """Check the search of ``traceviz explain``; a plugin has to be installed or registered for it."""
        assert record_of(self.record.code.lower()) == record_of(self.record.slug.upper()) == self.record


class RendererContract:
    """Tests of a renderer of text.

    Subclasses set the renderer, and may return more reports.
    """

    renderer: Renderer

    def reports(self) -> Mapping[str, Report]:
        """Return reports by a name for messages: an empty one, and one for each hostile name."""
        return {"empty": Report((), Verdict(VerdictCode.NONE, ""))} | {
            ascii(name[:20]): hostile_report(name) for name in HOSTILE_NAMES
        }

    def test_every_report_is_text_that_ends_with_a_line(self) -> None:
        """Check that no character in it acts on a terminal, and that no name breaks a line."""
        for name, report in self.reports().items():
            text = self.renderer.render(report, RenderOptions(80))
            assert not text or text.endswith("\n"), name
            assert [c for c in text if c != "\n" and not c.isprintable()] == [], name
            assert len(text.splitlines()) == text.count("\n"), name

    def test_a_report_renders_the_same_twice(self) -> None:
        """Check that rendering is pure: no clock, no environment, no file."""
        for name, report in self.reports().items():
            first, second = (self.renderer.render(report, RenderOptions(80)) for _ in range(2))
            assert first == second, name


def hostile_report(name: str) -> Report:
    """Return a report in which every text is ``name``, with every kind of block."""
    fact = Fact(name, name, name)
    columns = (
        Column("a", name),
        Column("b", name, "ns", 0),
        Column("share", name, "ratio", 2, bar=True),
        Column("d", name),
    )
    rows = tuple((name, 1_234_567, 1 / (index + 2), name) for index in range(14))
    bars = Bars(name, name, "ns", tuple(Bar(name, name, 100, 0.25) for _ in range(4)))
    timeline = Timeline(name, 0, 10**9, (Lane(name, (0.0, 0.5, None, 1.0)),))
    points = tuple(Point(name, value) for value in (1.0, None, 3.0))
    plotted = Series(name, "ns", points, (Level(0, 1.0), Level(2, 3.0)))
    blocks = (Facts((fact, fact)), Grid(columns, rows, name, 0.1), bars, timeline, plotted, Prose(name))
    return Report(
        run=(Fact("producer", name, name), fact),
        verdict=Verdict(cast("VerdictCode", name), name),
        sections=(Section(name, name, blocks),),
        findings=(Finding(name, name, Severity.ERROR, name, (fact,), (name, name), 100, math.pi / 4, name),),
        skipped=(Skipped(name, name),),
        notes=(Note(name, Severity.INFO, name, 2),),
    )


class CollectorContract:
    """Tests of a :class:`~traceviz.collectors.base.Collector`, which record nothing."""

    collector: Collector

    def plan(self, folder: Path) -> Plan:
        """Return a plan with this collector alone."""
        return Plan(folder, ("python", "train.py"), (self.collector.name,))

    def test_it_has_a_name_and_a_title(self) -> None:
        """Check the name, which is also the name of its folder."""
        assert re.fullmatch(r"[a-z][a-z0-9-]*", self.collector.name)
        assert self.collector.title

    def test_it_says_whether_it_can_record_here(self) -> None:
        """Check that one sentence of detail is given."""
        state = self.collector.availability()
        assert isinstance(state, Availability)
        assert state.detail

    def test_its_environment_leaves_that_of_the_program_alone(self) -> None:
        """Check that variables are returned, not set."""
        inherited = {"PATH": "/bin", "HOME": "/home/u"}
        added = self.collector.environment(self.plan(Path("run")), dict(inherited))
        assert all(isinstance(value, str) for value in added.values())
        assert inherited == {"PATH": "/bin", "HOME": "/home/u"}

    def test_a_run_that_left_nothing_is_no_error(self) -> None:
        """Check programs that are killed before anything is written."""
        with TemporaryDirectory() as folder:
            assert isinstance(self.collector.harvest(self.plan(Path(folder, "gone"))), Harvest)


def _head(path: Path) -> bytes:
    if path.is_dir():
        return b""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)
