"""``--where``: the rows of the catalogue that a condition keeps, and the error for an invalid one."""

import polars as pl
import pytest

from tests.archive.small_archives import add_rows, documented, new_archive
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.query.where import where
from traceviz.core.errors import UsageError

A1, A2, B1 = "a000000000000001", "a000000000000002", "b000000000000001"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return catalogue.read(documented(tmp_path_factory.mktemp("where") / "archive"))


def kept(rows, condition):
    return where(rows, condition).select("trace_id", "rank").rows()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("verdict = 'highly input-bound' and framework = 'tensorflow'", [(A1, None)]),
        ("verdict = 'highly input-bound' AND framework = 'pytorch'", []),
        ("tags['release'] = '1.1'", [(A2, None)]),
        ("tags['release'] in ('1.0', '1.1')", [(A1, None), (A2, None)]),
        ("tags['no such tag'] = 'x'", []),
        ("input_share > 0.1 and state = 'ready'", [(A1, None), (B1, 1)]),
        ("input_share is null and state = 'ready'", [(B1, 0)]),
        ("not input_share > 0.1", [(A2, None)]),
        ("recorded >= '2026-06-01'", [(B1, 0), (B1, 1)]),
        ("recorded < timestamp '2026-06-01' - interval 1 day", [(A1, None), (A2, None)]),
        ("year(added) = 2026 and rank = 0", [(B1, 0)]),
        ("source like 'ba_.json'", [("c0", None)]),
        ("trace_id = (select max(trace_id) from catalogue where state = 'ready')", [(B1, 0), (B1, 1)]),
        ("len(list_filter(findings, lambda f: f.code = 'TV203')) > 0", [(A2, None), (B1, 0)]),
        ("rank = 0 -- of the first rank", [(B1, 0)]),
        ("rank = 1\nor rank = 0", [(B1, 0), (B1, 1)]),
    ],
)
def test_rows_that_meet_the_condition_stay_in_their_order(rows, condition, expected) -> None:
    assert kept(rows, condition) == expected


def test_rows_keep_all_their_columns_and_types(rows) -> None:
    matching = where(rows, "true")
    assert matching.equals(rows)
    assert matching.schema == rows.schema


def test_the_order_is_that_of_the_rows_whatever_it_is(rows) -> None:
    backwards = rows.reverse()
    assert where(backwards, "state = 'ready'").equals(backwards.filter(pl.col("state") == "ready"))


def test_thousands_of_rows_stay_in_order_behind_a_subquery(tmp_path) -> None:
    store = new_archive(tmp_path / "archive")
    add_rows(store, *({"trace_id": f"{number:08x}", "rank": number % 7} for number in range(5000)))
    matching = where(catalogue.read(store), "trace_id in (select trace_id from catalogue where rank = 3)")
    assert matching["trace_id"].to_list() == [f"{number:08x}" for number in range(5000) if number % 7 == 3]


def test_no_rows_are_asked_without_complaint(rows) -> None:
    assert where(rows.clear(), "input_share > 0.1").height == 0
    with pytest.raises(UsageError, match="is not a condition"):
        where(rows.clear(), "input_shre > 0.1")


def test_some_columns_are_enough(rows) -> None:
    matching = where(rows.select("trace_id", "framework"), "framework = 'pytorch'")
    assert matching.rows() == [(B1, "pytorch"), (B1, "pytorch")]


def test_a_column_that_does_not_exist_is_named_with_those_that_do(rows) -> None:
    with pytest.raises(UsageError) as caught:
        where(rows, "verdct = 'highly input-bound'")
    error = caught.value
    assert error.what == "--where \"verdct = 'highly input-bound'\" is not a condition."
    message, offered, shown, mark = error.why.splitlines()
    assert message == 'Referenced column "verdct" not found in FROM clause!'
    assert '"verdict"' in offered
    assert (shown, mark) == ("verdct = 'highly input-bound'", "^" * len("verdct"))
    assert error.fix.startswith("Columns: trace_id, rank, state, ")
    assert "step_median" in error.fix


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("input_share", "neither true nor false"),
        ("'input-bound'", "neither true nor false"),
        ("", "neither true nor false"),
        ("true, false", "neither true nor false"),
        ("count(*) > 1", "sums up rows"),
        ("verdict = ", "ends too early"),
        ("rank >\n1 AND", "ends too early"),
        ("(rank > 1", "a parenthesis has no partner"),
        ("rank > 1)", "a parenthesis has no partner"),
        ("rank = = 1", 'near "="'),
        ("verdict = 'x", "unterminated"),
        ("true; select 1", "syntax error"),
        ("true) from catalogue; drop table given_rows; --", "has no partner"),
        ("trace_id in (select trace_id from kernels)", "kernels does not exist"),
        ("trace_id in (from read_csv('/etc/passwd'))", "read_csv"),
        ("exists (from '/etc/passwd')", "is a file"),
        ("exists (with x as (copy (select 1) to '/tmp/traceviz-never-written.csv') select 1)", "COPY"),
        ("source > 1", "Cannot compare"),
    ],
)
def test_what_is_no_condition_is_refused_with_the_reason(rows, condition, why) -> None:
    with pytest.raises(UsageError, match="is not a condition") as caught:
        where(rows, condition)
    assert why.lower() in caught.value.why.lower()
    assert "row of the catalogue" not in str(caught.value)
    assert "LINE" not in caught.value.why
    assert caught.value.exit_code == 2
