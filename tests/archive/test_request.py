"""Requests to a whole archive: the same answer here and on a worker of a cluster."""

import pickle

import numpy as np
import pytest

from tests.archive.catalogues import archive_of, catalogue_of, nightly
from tests.conftest import REPOSITORY
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.request import ReportRequest, TrendRequest, report_for, trend_for
from traceviz.archive.runners.choose import run_one, runner_for
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.archive.trends.report import document
from traceviz.core.errors import UsageError

FILES = sorted((REPOSITORY / "sample_traces" / "synthetic" / "torch_four_ranks_straggler").iterdir())
NOISE = 1 + np.tile([0.0, 0.01, -0.01, 0.005], 6)


@pytest.fixture
def store(tmp_path):
    filled = Store.at(tmp_path / "archive")
    archive_of(filled, FILES[:2], job="two")
    rows = catalogue_of(*nightly(2e8 * NOISE * np.repeat([1.0, 1.1], 12), framework="made"))
    catalogue.append(filled, rows.with_columns(trace_id="made" + rows["trace_id"]).to_arrow().cast(CATALOGUE))
    return filled


def test_a_worker_of_a_cluster_gives_the_same_answers(store, dask_address):
    requests = (ReportRequest(store), ReportRequest(store, job="two"), ReportRequest(store, "framework = 'made'"))
    trend = TrendRequest(store, "step_median", "framework = 'made'")
    runner = runner_for(None, dask_address, store)
    assert [run_one(runner, report_for, request) for request in requests] == [
        report_for(request) for request in requests
    ]
    assert document(run_one(runner, trend_for, trend)) == document(trend_for(trend))


def test_requests_can_be_sent_and_give_the_same_answers(store):
    report, trend = ReportRequest(store, job="two"), TrendRequest(store, "step_median", "framework = 'made'")
    sent_report, sent_trend = pickle.loads(pickle.dumps((report, trend)))
    assert run_one(SerialRunner(), report_for, sent_report) == report_for(report)
    assert document(run_one(SerialRunner(), trend_for, sent_trend)) == document(trend_for(trend))


def test_a_trend_can_be_sent(store):
    judged = trend_for(TrendRequest(store, "step_median", "framework = 'made'"))
    assert document(pickle.loads(pickle.dumps(judged))) == document(judged)


def test_a_place_without_an_archive_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is not an archive"):
        report_for(ReportRequest(Store.at(tmp_path)))


def test_an_archive_without_traces_can_be_asked(tmp_path):
    empty = Store.at(tmp_path / "empty")
    layout.create(empty)
    assert report_for(ReportRequest(empty)).verdict.code == "empty"
    assert document(trend_for(TrendRequest(empty, "step_median"))).verdict.code == "cannot-judge"
