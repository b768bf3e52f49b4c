"""Figures of saved reports: the same for every reader; and `--workers` and `--scheduler` of report and trend."""

import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

from tests.archive.catalogues import archive_of
from tests.conftest import REPOSITORY
from traceviz.archive.runners.base import RunnerError
from traceviz.archive.runners.local import LocalRunner, SerialRunner
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.archive.trends import saved_figures
from traceviz.archive.trends.report import document
from traceviz.archive.trends.saved_figures import with_figure
from traceviz.archive.trends.trend import trend as judge
from traceviz.cli.archive.report import report, trend
from traceviz.core.errors import OutputError, UsageError, WorkerError

FILES = sorted((REPOSITORY / "sample_traces" / "synthetic" / "torch_four_ranks_straggler").iterdir())


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """An archive of four traces; the report of one is missing, and its rows."""
    store = Store.at(tmp_path_factory.mktemp("figures") / "archive")
    rows = archive_of(store, FILES)
    store.remove(*layout.trace_parts("kineto", f"{1:016x}"), layout.REPORT)
    return store, rows


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nix", ""),
        ("step_medain", "Did you mean step_median?"),
        ("class:inputwait", "Did you mean class:input_wait?"),
        ("source", "source is a column of the catalogue, and no figure: "),
    ],
)
def test_a_figure_that_does_not_exist_is_refused_with_what_was_meant(filled, name, why):
    with pytest.raises(UsageError, match="There is no metric") as caught:
        with_figure(*filled, name)
    assert caught.value.why.startswith(why)
    assert bool(caught.value.why) == bool(why)


def test_a_fact_that_no_report_has_is_told_with_those_that_it_has(filled):
    figure, rows = with_figure(*filled, "steps.cuont")
    assert rows["steps.cuont"].null_count() == 4
    sentence = document(judge(rows, figure)).verdict.sentence
    assert sentence.startswith("Cannot judge: no report tells steps.cuont: section steps has no cuont here, but ")
    assert "median_ns" in sentence


@pytest.mark.parametrize(
    ("name", "better"), [("quality:val_accuracy", "higher"), ("quality:loss", "lower"), ("quality:learning_rate", "")]
)
def test_the_name_of_a_figure_of_quality_tells_which_way_is_better(filled, name, better):
    figure, rows = with_figure(*filled, name)
    assert (figure.better, rows[name].null_count()) == (better, 4)


def test_a_function_that_no_trace_calls_is_refused(filled):
    with pytest.raises(UsageError, match=r"^cudaMaloc is not called in any of 3 traces\."):
        with_figure(*filled, "api:cudaMaloc")


@pytest.mark.parametrize(
    ("name", "runner"),
    [
        ("api:cudaLaunchKernel", SerialRunner()),
        ("steps.count", SerialRunner()),
        pytest.param("api:cudaLaunchKernel", LocalRunner(2), marks=pytest.mark.slow),
    ],
)
def test_a_figure_is_the_same_whoever_reads_the_reports(filled, monkeypatch, name, runner):
    check_same_figure(*filled, monkeypatch, name, (runner,))


def check_same_figure(store, rows, monkeypatch, name, runners):
    figure, expected = with_figure(store, rows, name)
    assert expected[name].null_count() == 1
    assert expected[name].min() > 0
    monkeypatch.setattr(saved_figures, "REPORTS_PER_PART", 1)
    for runner in runners:
        known, measured = with_figure(store, rows, name, runner=runner)
        assert known == figure
        assert_frame_equal(measured, expected)


def test_progress_counts_reports(filled, monkeypatch):
    monkeypatch.setattr(saved_figures, "REPORTS_PER_PART", 3)
    reports = []
    with_figure(*filled, "steps.count", lambda *report: reports.append(report))
    assert reports == [("reports", 3, 4), ("reports", 4, 4)]


@pytest.mark.parametrize(("cause", "raised"), [(None, WorkerError), (OutputError("The place is gone."), OutputError)])
def test_a_worker_that_fails_ends_it(filled, cause, raised):
    class Failing:
        def map(self, function, arguments):
            for argument in arguments:
                yield argument, RunnerError("failed", "It was killed.", cause)

    with pytest.raises(raised):
        with_figure(*filled, "steps.count", runner=Failing())


@pytest.mark.slow
def test_a_trend_of_saved_figures_is_the_same_in_other_processes(train):
    expected = page(trend, train.url, "api:cudaLaunchKernel")
    assert len(expected.splitlines()) > 4
    assert page(trend, train.url, "api:cudaLaunchKernel", "--workers", "2") == expected
    assert train.names("work") == []


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """An archive of four ranks of one job."""
    store = Store.at(tmp_path_factory.mktemp("train") / "archive")
    archive_of(store, FILES, job="train")
    return store


def page(command, *arguments):
    result = CliRunner().invoke(command, arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.exception
    return result.stdout


def test_where_there_is_no_archive_a_cluster_is_not_asked_and_nothing_is_made(tmp_path):
    for command, options in ((report, ()), (trend, ("step_median",))):
        result = CliRunner().invoke(command, [str(tmp_path / "none"), *options, "--scheduler", "tcp://127.0.0.1:1"])
        assert isinstance(result.exception, UsageError)
        assert "is not an archive" in str(result.exception)
    assert list(tmp_path.iterdir()) == []
