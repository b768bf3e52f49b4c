"""Shares of CUDA API time by framework and by tag, from the calls of the traces of an archive."""

import pytest

from tests.analyses.builders import tables
from tests.archive.small_archives import add_trace, new_archive
from traceviz.archive.archive import Archive
from traceviz.archive.population import cuda_shares
from traceviz.archive.query import on_all
from traceviz.core.errors import UsageError
from traceviz.report import Grid, Prose


@pytest.fixture
def archive(tmp_path):
    """3 traces: calls of 30 and 10 ns of TensorFlow, of 60 and 40 ns of PyTorch in two traces; and one without any."""
    store = new_archive(tmp_path)
    calls = {
        "a1": ("tensorflow", "1", [(0, 30, "cudaFree"), (40, 10, "cudaLaunchKernel")]),
        "a2": ("pytorch", "1", [(0, 60, "cudaMalloc")]),
        "a3": ("pytorch", "2", [(0, 40, "cudaLaunchKernel")]),
    }
    for trace_id, (framework, release, api) in calls.items():
        facts = {"framework": framework, "tags": [("release", release)], "exposed_api_ns": 1}
        add_trace(store, trace_id, tables(cuda_api=api), **facts)
    add_trace(store, "b1", tables(kernels=[(0, 10, "gemm")]), framework="jax")
    return Archive(tmp_path)


def shares(report):
    (every,) = (grid for grid in report.grids("cuda_api") if grid.audience == "machine")
    return {(row[0], row[1]): row[2] for row in every.rows}


def test_calls_of_a_framework_are_summed_over_its_traces(archive):
    report = archive.report()
    assert shares(report) == {
        ("pytorch", "cudaMalloc"): 0.6,
        ("pytorch", "cudaLaunchKernel"): 0.4,
        ("tensorflow", "cudaFree"): 0.75,
        ("tensorflow", "cudaLaunchKernel"): 0.25,
    }
    slugs = [section.slug for section in report.sections]
    assert slugs.index("cuda_api") == slugs.index("outliers") - 1


def test_people_see_a_column_for_each_framework_the_one_with_most_time_first(archive):
    people = next(block for block in archive.report().blocks("cuda_api") if isinstance(block, Grid))
    assert [column.label for column in people.columns] == ["Function", "pytorch", "tensorflow"]
    assert people.rows == (("cudaFree", 0.0, 0.75), ("cudaMalloc", 0.6, 0.0), ("cudaLaunchKernel", 0.4, 0.25))


def test_by_a_tag_traces_of_two_frameworks_are_one_group(archive):
    report = archive.report(per="release")
    assert shares(report)["1", "cudaMalloc"] == 0.6
    assert shares(report)["2", "cudaLaunchKernel"] == 1.0
    with pytest.raises(UsageError, match="no tag 'realease'"):
        archive.report(per="realease")


def test_of_more_traces_than_are_read_unasked_the_section_says_how_to_ask(archive, monkeypatch):
    monkeypatch.setattr(on_all, "MOST_TRACES", 2)
    (said,) = archive.report().blocks("cuda_api")
    assert isinstance(said, Prose)
    assert said.text == ("Calls of the CUDA API of 3 traces were not read, which takes a while: --per framework does.")
    assert len(shares(archive.report(per="framework"))) == 4


def test_an_archive_without_calls_has_no_such_section(tmp_path):
    add_trace(new_archive(tmp_path), "b1", tables(kernels=[(0, 10, "gemm")]), framework="jax")
    assert [section.slug for section in Archive(tmp_path).report().sections].count(cuda_shares.SLUG) == 0
