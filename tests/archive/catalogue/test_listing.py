"""A list of traces is a document like any other, and `show` is the report of the trace."""

import csv
import io
import json

import polars as pl
import pytest

import traceviz
from tests.archive.made_sources import INPUT_BOUND, LAUNCH_BOUND, POINTER, RANKS, SUMMARY, UNREADABLE
from traceviz.archive.archive import Archive
from traceviz.archive.catalogue.columns import COLUMNS
from traceviz.archive.catalogue.listing import ERROR_COLUMNS, listing
from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.render.json import dumps
from traceviz.report import Grid


@pytest.fixture
def archive(filled_once):
    return Archive(filled_once / "archive")


def grid(report, slug="traces"):
    (block,) = (block for block in report.section(slug).blocks if isinstance(block, Grid))
    return [dict(zip([column.name for column in block.columns], row, strict=True)) for row in block.rows]


def rounded(report):
    """Return a report as JSON, without the last digits of floats: sums over threads differ there from run to run."""
    return json.loads(dumps(report), parse_float=lambda text: float(f"{float(text):.7g}"))


def test_each_rank_has_a_row_and_quarantined_traces_a_table_of_their_own(archive):
    document = listing(archive.store, archive.rows())
    assert len(grid(document)) == 5
    assert {row["source"] for row in grid(document, "quarantined")} == UNREADABLE
    assert tuple(grid(document, "quarantined")[0]) == ERROR_COLUMNS
    assert document.verdict.sentence == "5 traces, 2 more could not be read."


def test_rows_are_sorted_and_cut_and_unknown_values_come_last(archive):
    document = listing(archive.store, archive.rows(), ("source", "step_median"), ("-step_median",), 4)
    medians = [row["step_median"] for row in grid(document)]
    assert medians == sorted(medians, reverse=True)
    assert SUMMARY not in {row["source"] for row in grid(document)}  # a summary has no steps
    assert "The first 4 rows are shown." in document.verdict.sentence
    ascending = grid(listing(archive.store, archive.rows(), ("source",), ("step_median",)))
    assert [row["source"] for row in ascending][::4] == [LAUNCH_BOUND, SUMMARY]


def test_every_column_can_be_shown_in_every_format(archive):
    report = listing(archive.store, archive.rows(), tuple(column.name for column in COLUMNS))
    rows = list(csv.DictReader(io.StringIO(traceviz.to_text(report, "csv").split("\n\n")[0])))
    assert {row["tags"] for row in rows} == {"branch=main"}
    assert {row["recorded_ns"] for row in rows if row["source"] == INPUT_BOUND} == {"1700000000000000000"}
    assert {row["findings"] for row in rows if row["source"] == LAUNCH_BOUND} == {"launch-bound-kernels"}
    document = json.loads(traceviz.to_text(report, "json"))
    assert document["schema"] == "traceviz.listing/1"
    values = document["sections"][0]["blocks"][0]["rows"]
    assert {row["job"] for row in values if row["source"] in RANKS} == {"sources/two_ranks"}
    assert traceviz.to_text(report, "markdown").startswith("# Traces")
    assert max(map(len, traceviz.to_text(report, "terminal", traceviz.RenderOptions(80)).splitlines())) <= 80


def test_moments_are_dates_by_the_names_that_sql_has_for_them(archive):
    lines = grid(listing(archive.store, archive.rows(), ("source", "recorded", "added"), ("-recorded",)))
    assert {row["recorded"] for row in lines if row["source"] == INPUT_BOUND} == {"2023-11-14 22:13:20"}
    recorded = [row["recorded"] for row in lines if row["recorded"]]
    assert recorded == sorted(recorded, reverse=True)
    assert all(row["added"] > "2026" for row in lines)


def test_why_a_trace_could_not_be_read_is_told_in_full(archive):
    text = traceviz.to_text(listing(archive.store, archive.rows()), "terminal", traceviz.RenderOptions(80))
    (error,) = archive.rows().filter(pl.col("source") == POINTER)["error"]
    assert error in " ".join(text.split())


def test_the_newest_recording_is_first_and_unknown_times_are_last(archive):
    dates = [row["recorded"] for row in grid(listing(archive.store, archive.rows()))]
    known = [moment for moment in dates if moment]
    assert len(set(known)) > 1
    assert dates == [*sorted(known, reverse=True), *[None] * (len(dates) - len(known))]


def test_a_column_that_does_not_exist_is_refused(archive):
    for columns, sort in ((("step_medain",), ()), ((), ("-step_medain",))):
        with pytest.raises(UsageError, match="Did you mean 'step_median'"):
            listing(archive.store, archive.rows(), columns, sort)


def test_an_archive_without_traces_says_so(archive):
    document = listing(archive.store, archive.rows().clear())
    assert document.sections == ()
    assert traceviz.to_text(document).splitlines()[-1] == "▌ 0 traces."


@pytest.mark.parametrize("source", [INPUT_BOUND, LAUNCH_BOUND, f"two_ranks/{RANKS[1]}"])
def test_show_is_the_report_of_the_trace_but_for_its_id(filled_once, archive, source):
    name = source.rpartition("/")[2]
    trace_id = archive.rows().filter(pl.col("source") == name)["trace_id"][0]
    shown, made = archive.show(trace_id[:5]), traceviz.report_on(filled_once / "sources" / source)
    assert shown.run[0].value == f"{name} ({trace_id})"
    assert rounded(shown)["sections"] == rounded(made)["sections"]
    assert rounded(shown)["findings"] == rounded(made)["findings"]
    assert (shown.verdict, shown.notes, shown.skipped) == (made.verdict, made.notes, made.skipped)
    assert shown.run[1:] == made.run[1:]


def test_show_of_a_trace_with_2_rows_in_the_catalogue_is_its_report(archive, monkeypatch):
    rows = archive.rows()
    trace_id = rows.filter(pl.col("source") == INPUT_BOUND)["trace_id"][0]
    report = archive.show(trace_id)
    monkeypatch.setattr(Archive, "rows", lambda _: pl.concat([rows, rows]))  # a row for each rank
    assert archive.show(trace_id) == report


def test_show_of_what_could_not_be_read_says_why(archive):
    trace_id = archive.rows().filter(pl.col("source") == POINTER)["trace_id"][0]
    with pytest.raises(DamagedTraceError, match=r"pointer\.sqlite .* could not be read .* git-lfs"):
        archive.show(trace_id)


def test_show_of_a_trace_whose_report_is_gone_says_what_to_do(filled):
    archive = Archive(filled / "archive")
    trace_id = archive.rows().filter(pl.col("source") == INPUT_BOUND)["trace_id"][0]
    next((filled / "archive").rglob(f"trace_id={trace_id}/report.json")).unlink()
    with pytest.raises(DamagedTraceError, match="archive verify"):
        archive.show(trace_id)
