"""``traceviz archive report`` and ``trend``: what they print, and what they exit with."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from tests.archive.catalogues import archive_of, catalogue_of, nightly
from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.archive.trends.saved_figures import with_figure
from traceviz.cli.main import main

FILES = sorted((REPOSITORY / "sample_traces" / "synthetic" / "torch_four_ranks_straggler").iterdir())
NOISE = 1 + np.tile([0.0, 0.01, -0.01, 0.005], 6)
SLOWER = 2e8 * NOISE * np.repeat([1.0, 1.1], 12)


@pytest.fixture
def archive(tmp_path):
    store = Store.at(tmp_path / "archive")
    layout.create(store)
    rows = catalogue_of(*nightly(SLOWER, framework="torch", host_cpu=0.5), *nightly([1, 2], framework="jax"))
    catalogue.append(store, rows.to_arrow().cast(CATALOGUE))
    return store.url


def ran(*args):
    result = CliRunner().invoke(main, ["archive", *map(str, args)])
    return result.exit_code, result.output


def test_the_report_is_printed(archive):
    code, text = ran("report", archive, "--width", 80)
    assert code == 0
    assert "0 of 26 traces wait for input" in text


def test_a_condition_takes_some_of_the_traces(archive):
    code, text = ran("report", archive, "--where", "framework = 'jax'", "--format", "json")
    assert (code, json.loads(text)["run"]["traces"]) == (0, 2)


def test_a_trend_is_printed_with_its_change(archive):
    code, text = ran("trend", archive, "step_median", "--where", "framework = 'torch'", "--width", 80)
    assert (code, "▲ 2026-01-13" in text) == (0, True)


@pytest.mark.parametrize(("limit", "code"), [("5%", 1), ("15%", 0)])
def test_a_regression_fails_the_build(archive, limit, code):
    asked = ("trend", archive, "step_median", "--where", "framework = 'torch'", "--fail-on-regression", limit)
    assert ran(*asked)[0] == code


def test_too_few_runs_exit_with_4_where_a_verdict_is_asked_for(archive):
    asked = ("trend", archive, "step_median", "--where", "framework = 'jax'")
    assert ran(*asked)[0] == 0
    assert ran(*asked, "--require-verdict")[0] == 4
    assert ran(*asked, "--fail-on-regression", "5%")[0] == 4


def test_a_regression_of_what_may_rise_or_fall_must_be_explained(archive):
    code, text = ran("trend", archive, "host_cpu", "--fail-on-regression", "5%")
    assert (code, "--better lower" in text) == (2, True)
    assert ran("trend", archive, "host_cpu", "--better", "lower", "--fail-on-regression", "5%")[0] == 0


def test_junit_lists_the_gate(archive):
    asked = ("trend", archive, "step_median", "--where", "framework = 'torch'", "--format", "junit")
    assert ran(*asked)[0] == 2
    code, text = ran(*asked, "--fail-on-regression", "5%")
    assert (code, "<failure" in text) == (1, True)


@pytest.mark.parametrize(
    "asked",
    [
        ("trend", "step_medium"),
        ("trend", "step_median", "--by", "nothing"),
        ("report", "--job", "none"),
        ("report", "--where", "no = 1"),
    ],
)
def test_what_does_not_exist_exits_with_2(archive, asked):
    command, *rest = asked
    assert ran(command, archive, *rest)[0] == 2


def test_a_place_without_an_archive_exits_with_2(tmp_path):
    code, text = ran("report", tmp_path)
    assert (code, "is not an archive" in text) == (2, True)


def test_nothing_is_overwritten_without_force(archive, tmp_path):
    target = tmp_path / "report.json"
    target.write_text("mine")
    assert ran("report", archive, "-o", target)[0] == 2
    assert target.read_text() == "mine"
    assert ran("report", archive, "-o", target, "--force", "--format", "json")[0] == 0
    assert json.loads(target.read_text())["schema"] == "traceviz.population/1"


def test_a_figure_of_saved_reports_has_a_trend_too(tmp_path):
    store = Store.at(tmp_path / "archive")
    archive_of(store, FILES)
    code, text = ran("trend", store.url, "api:cudaLaunchKernel", "--format", "json")
    document = json.loads(text)
    assert (code, document["run"]["unit"], document["run"]["runs"]) == (0, "ratio", len(FILES))
    runs = next(block for block in document["sections"][0]["blocks"] if block.get("title") == "Runs")
    expected = [rows_of_api(path)["cudaLaunchKernel"] for path in FILES]
    assert sorted(row["value"] for row in runs["rows"]) == pytest.approx(sorted(expected))


def rows_of_api(path):
    return {row["name"]: row["share_of_api"] for row in api.report_on(path).rows("cuda_api")}


def test_a_saved_report_that_is_gone_leaves_its_trace_out(tmp_path):
    store = Store.at(tmp_path / "archive")
    rows = archive_of(store, FILES)
    store.remove(*layout.trace_parts("kineto", f"{1:016x}"), layout.REPORT)
    known, measured = with_figure(store, rows, "steps.count")
    assert known.unit == "count"
    assert measured["steps.count"].null_count() == 1


@pytest.mark.parametrize("name", ["speedup", "clas:input_wait", "nothing"])
def test_a_figure_that_no_report_has_is_refused(archive, name):
    assert ran("trend", archive, name)[0] == 2
