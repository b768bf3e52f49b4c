"""Traces are named by the beginning of their ids or by a condition, and are gone when they are removed."""

import polars as pl
import pytest

from tests.archive.made_sources import LAUNCH_BOUND, RANKS
from traceviz.archive.archive import Archive
from traceviz.archive.query.where import full_id, select_ids
from traceviz.archive.runners.local import SerialRunner
from traceviz.core.errors import UsageError

IDS = pl.DataFrame({"trace_id": ["abcd000000000000", "abcd111111111111", "ef00000000000000", "ef00000000000000"]})


def test_the_first_digits_of_an_id_are_enough_where_only_one_begins_with_them():
    assert full_id(IDS, "ef00") == "ef00000000000000"
    assert full_id(IDS, "ABCD1") == "abcd111111111111"
    assert full_id(IDS, "abcd000000000000") == "abcd000000000000"


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("abcd", "2 traces begin with 'abcd': abcd000000000000, abcd111111111111"),
        ("9999", "There is no trace '9999'"),
        ("ef0", "too short"),
        ("", "too short"),
    ],
)
def test_an_id_that_is_none_or_several_is_refused(prefix, message):
    with pytest.raises(UsageError, match=message):
        full_id(IDS, prefix)


def test_traces_are_chosen_by_ids_or_by_a_condition_and_never_by_neither_or_both(filled_once):
    rows = Archive(filled_once / "archive").rows()
    assert select_ids(IDS, ["ef00", "abcd1", "ef00"], None) == ["ef00000000000000", "abcd111111111111"]
    ids = select_ids(rows, [], "job = 'sources/two_ranks'")
    assert set(rows.filter(pl.col("trace_id").is_in(ids))["source"]) == set(RANKS)
    for prefixes, condition in (([], None), (["ef00"], "true")):
        with pytest.raises(UsageError, match="Traces are selected either by"):
            select_ids(rows, prefixes, condition)


def test_a_removed_trace_is_gone_from_the_catalogue_and_the_disk(filled):
    archive = Archive(filled / "archive")
    wanted = archive.rows().filter(pl.col("source") == LAUNCH_BOUND)["trace_id"][0]
    assert archive.remove(wanted[:8]) == 1
    assert wanted not in set(archive.rows()["trace_id"])
    assert list((filled / "archive" / "traces").rglob(f"trace_id={wanted}")) == []
    assert archive.verify().faults == ()
    with pytest.raises(UsageError, match="There is no trace"):
        archive.show(wanted)


def test_of_a_removed_trace_no_name_is_left_in_the_catalogue(filled):
    archive = Archive(filled / "archive")
    gone, stays = ({**row} for row in archive.rows().filter(pl.col("source").is_in(RANKS)).to_dicts())
    archive.remove(gone["trace_id"])
    (segment,) = (filled / "archive" / "catalogue").iterdir()
    told = pl.read_parquet(segment)
    (row,) = told.filter(pl.col("trace_id") == gone["trace_id"]).to_dicts()
    kept = {"trace_id", "rank", "state", "format", "added_ns", "changed_ns", "traceviz_version"}
    assert {name for name, value in row.items() if value not in (None, "")} == kept
    assert row["state"] == "removed"
    assert told.filter(pl.col("trace_id") == stays["trace_id"])["source"].to_list() == [stays["source"]]


def test_adding_a_removed_trace_brings_it_back(filled):
    archive = Archive(filled / "archive")
    before = archive.rows().filter(pl.col("state") == "ready").drop("changed_ns", "added_ns", "tags")
    assert archive.remove(condition="state = 'ready'") == 5
    assert archive.rows().filter(pl.col("state") == "ready").is_empty()
    assert archive.add(filled / "sources", runner=SerialRunner()).added == 5
    after = archive.rows().filter(pl.col("state") == "ready").drop("changed_ns", "added_ns", "tags")
    assert after.equals(before)


def test_a_quarantined_trace_can_be_removed(filled):
    archive = Archive(filled / "archive")
    assert archive.remove(condition="state = 'quarantined'") == 2
    assert set(archive.rows()["state"]) == {"ready"}
