"""Settings of DuckDB: their effects, and the refusal of a query if one of them has none."""

from dataclasses import replace

import duckdb
import pytest

from tests.archive.small_archives import documented
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.query import engine as settings
from traceviz.archive.query.engine import SETTINGS, Engine, connect
from traceviz.archive.query.where import where
from traceviz.core.errors import MissingToolError

BY_NAME = {setting.name: setting for setting in SETTINGS}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return documented(tmp_path_factory.mktemp("settings") / "archive")


@pytest.fixture
def database():
    with duckdb.connect(":memory:") as connection:
        yield connection


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 / 0", None),
        ("1 % 0", None),
        ("1 // 0", None),
        ("-1.5 / 0", None),
        ("sum(dur_ns) / (count(*) - count(*))", None),
        ("sum(dur_ns) // count(*)", 671 // 8),
        ("7 / 2", 3.5),
        ("list(1 ORDER BY 1)", [1] * 8),
        ("(SELECT list(x ORDER BY x) FROM (VALUES (2), (NULL), (1)) AS t(x))", [1, 2, None]),
        ("(SELECT list(x ORDER BY x DESC) FROM (VALUES (2), (NULL), (1)) AS t(x))", [2, 1, None]),
        ("'a' = 'A'", False),
        ("(TIMESTAMPTZ '2026-07-01 00:30:00+02')::DATE::VARCHAR", "2026-06-30"),
    ],
)
def test_answers_are_as_documented_in_every_version_of_the_engine(store, expression, expected) -> None:
    with Engine(store) as engine:
        assert engine.sql(f"SELECT any_value(v) FROM (SELECT {expression} AS v FROM kernels)").to_pydict() == {
            "any_value(v)": [expected]
        }


def test_a_condition_that_divides_by_zero_holds_for_no_row(store) -> None:
    listed = catalogue.read(store)
    assert listed.height == 6
    assert [where(listed, f"1 {sign} (rank - rank) is null").height for sign in ("/", "//", "%")] == [6, 6, 6]
    assert where(listed, "1 / (rank - rank) > 0").height == 0


@pytest.mark.parametrize("name", BY_NAME)
def test_each_trial_notices_another_value_of_its_setting(database, name) -> None:
    other = {
        "TimeZone": "'Asia/Tokyo'",
        "error_on_division_by_zero": "true",
        "ieee_floating_point_ops": "true",
        "integer_division": "true",
        "default_order": "'DESCENDING'",
        "default_null_order": "'NULLS_FIRST'",
        "default_collation": "'NOCASE'",
        "enable_external_access": "true",
        "lock_configuration": "false",
    }
    database.execute("SET GLOBAL ieee_floating_point_ops = false")
    with pytest.raises(MissingToolError, match=f"does not apply {name} = ") as caught:
        settings.apply(database, [replace(BY_NAME[name], value=other[name])])
    assert (caught.value.exit_code, BY_NAME[name].trial in caught.value.why) == (3, True)
    assert duckdb.__version__ in caught.value.what
    assert "Install another version of DuckDB" in caught.value.fix


def test_settings_hold_for_all_cursors(tmp_path) -> None:
    with connect(str(tmp_path)) as connection, connection.cursor() as first, connection.cursor() as second:
        for cursor in (connection, first, second, second.cursor()):
            assert cursor.execute("SELECT 1 % i FROM range(2) AS t(i)").fetchall() == [(None,), (0,)]


def test_no_query_runs_if_a_setting_has_no_effect(store, monkeypatch) -> None:
    broken = replace(BY_NAME["ieee_floating_point_ops"], value="true")
    monkeypatch.setattr(settings.apply, "__defaults__", ((broken,),))
    with pytest.raises(MissingToolError, match="ieee_floating_point_ops"):
        Engine(store)
    with pytest.raises(MissingToolError, match="ieee_floating_point_ops"):
        where(catalogue.read(store), "rank / 0 > 1")
