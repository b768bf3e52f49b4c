"""The report on all traces: sums that are bounds, the worst first, and what could not be judged."""

import pytest

from tests.analyses.builders import tables
from tests.archive.catalogues import START_NS, catalogue_of
from tests.archive.small_archives import add_trace, new_archive
from traceviz import api
from traceviz.archive.archive import Archive
from traceviz.archive.population.population import at_stake, population, with_times
from traceviz.archive.query import on_all
from traceviz.archive.query import on_all as cuda_shares
from traceviz.core.errors import UsageError
from traceviz.report import POPULATION, Bars, Grid, Prose


@pytest.fixture
def archive(tmp_path):
    """3 traces: calls of 30 and 10 ns of TensorFlow, of 60 and 40 ns of PyTorch in two traces; and one without any."""
    store = new_archive(tmp_path)
    calls = {
        "a1": ("tensorflow", "1", [(0, 30, "cudaFree"), (40, 10, "cudaLaunchKernel")]),
        "a2": ("pytorch", "1", [(0, 60, "cudaMalloc")]),
        "a3": ("pytorch", "2", [(0, 40, "cudaLaunchKernel")]),
    }
    for trace_id, (framework, release, functions) in calls.items():
        facts = {"framework": framework, "tags": [("release", release)], "exposed_api_ns": 1}
        add_trace(store, trace_id, tables(cuda_api=functions), **facts)
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


HOUR_NS = 3_600_000_000_000


def finding(code="TV303", name="pageable-copies", stake_ns=HOUR_NS, share=0.1, severity="warning"):
    return {"code": code, "name": name, "severity": severity, "share": share, "stake_ns": stake_ns}


def run(**facts):
    """Return 10 hours on 2 devices, 9 of them in 100 steps."""
    known = {"span_ns": 10 * HOUR_NS, "devices": 2, "steps": 100, "step_mean": 9 * HOUR_NS // 100}
    return {**known, "format": "nsys", "framework": "torch", "gpu": "H100", "verdict": "not input-bound", **facts}


def stakes_of(*rows):
    return at_stake(with_times(catalogue_of(*rows))).to_dicts()


def grids(report, slug):
    return [block for block in report.section(slug).blocks if isinstance(block, Grid)]


def test_time_at_stake_is_summed_over_traces_and_devices():
    (stake,) = stakes_of(run(findings=[finding()]), run(devices=1, findings=[finding()]), run())
    assert (stake["stake_ns"], stake["gpu_stake_ns"], stake["traces"]) == (2 * HOUR_NS, 3 * HOUR_NS, 2)


def test_no_more_is_at_stake_than_the_share_of_what_was_recorded():
    """A report on 8 devices of a process adds up what each of them loses; its share is that of one."""
    (stake,) = stakes_of(run(devices=8, findings=[finding(stake_ns=50 * HOUR_NS, share=0.25)]))
    assert (stake["stake_ns"], stake["gpu_stake_ns"]) == (25 * HOUR_NS // 10, 20 * HOUR_NS)


def test_findings_of_one_kind_have_no_more_at_stake_than_was_recorded():
    (stake,) = stakes_of(run(findings=[finding(stake_ns=8 * HOUR_NS, share=0.8)] * 2))
    assert (stake["stake_ns"], stake["gpu_stake_ns"]) == (10 * HOUR_NS, 20 * HOUR_NS)


def test_what_is_no_share_is_bounded_by_what_was_recorded():
    (stake,) = stakes_of(run(findings=[finding(stake_ns=50 * HOUR_NS, share=None)]))
    assert stake["stake_ns"] == 10 * HOUR_NS


def test_a_finding_that_comes_twice_in_a_trace_counts_that_trace_once():
    (stake,) = stakes_of(run(findings=[finding(), finding()]))
    assert (stake["traces"], stake["ranks"], stake["stake_ns"]) == (1, 1, 2 * HOUR_NS)


def test_ranks_wait_for_the_one_with_most_at_stake():
    """Of 4 ranks one waits for input, and the others for it: without that wait all of them would be done earlier."""
    ranks = [run(trace_id="a", rank=n, job="j", recorded_ns=START_NS, devices=1, communication=0.1) for n in range(4)]
    ranks[2]["findings"] = [finding(stake_ns=HOUR_NS, share=0.1)]
    ranks[3]["findings"] = [finding(stake_ns=HOUR_NS // 2, share=0.05)]
    (stake,) = stakes_of(*ranks, run())
    assert (stake["stake_ns"], stake["gpu_stake_ns"], stake["ranks"], stake["traces"]) == (
        4 * HOUR_NS,
        4 * HOUR_NS,
        2,
        1,
    )


@pytest.mark.parametrize(("code", "communication"), [("TV504", 0.1), ("TV101", 0.0), ("TV101", None)])
def test_ranks_do_not_wait_for_one_that_waits_or_that_they_do_not_talk_to(code, communication):
    ranks = [run(trace_id="a", rank=n, job="j", recorded_ns=START_NS, communication=communication) for n in range(4)]
    ranks[2]["findings"] = [finding(code=code)]
    (stake,) = stakes_of(*ranks)
    assert (stake["stake_ns"], stake["gpu_stake_ns"]) == (HOUR_NS, 2 * HOUR_NS)


def test_ranks_that_were_recorded_for_unequal_times_have_the_largest_share_at_stake():
    known = {"trace_id": "a", "job": "j", "recorded_ns": START_NS, "devices": 1, "communication": 0.1}
    slow = run(rank=0, findings=[finding(stake_ns=8 * HOUR_NS, share=0.8)], **known)
    (stake,) = stakes_of(slow, run(rank=1, **{**known, "span_ns": HOUR_NS}))
    assert stake["stake_ns"] == stake["gpu_stake_ns"] == 88 * HOUR_NS // 10


def test_the_trace_with_most_at_stake_is_named():
    (stake,) = stakes_of(run(findings=[finding()]), run(findings=[finding(stake_ns=2 * HOUR_NS, share=0.2)]))
    assert stake["worst"] == f"{1:016x}"


def test_the_sentence_says_what_fixing_would_save_at_most():
    report = population(catalogue_of(run(findings=[finding()]), run(verdict="highly input-bound")))
    assert report.verdict.sentence == (
        "1 of 2 traces waits for input. Most is at stake by pageable-copies (TV303, 1 trace): fixing it would save at "
        "most 2.00 h of 40.0 h of GPU time recorded (5.0 %)."
    )
    assert report.schema == POPULATION


def test_without_devices_the_time_of_the_runs_is_told():
    report = population(catalogue_of(run(devices=None, findings=[finding()])))
    assert "at most 1.00 h of 10.0 h of time recorded (10.0 %)" in report.verdict.sentence


def test_verdicts_count_every_trace_once_by_its_worst_rank():
    ranks = [run(trace_id="a", rank=n, verdict=v) for n, v in enumerate(("not input-bound", "highly input-bound"))]
    report = population(catalogue_of(*ranks, run(), run(verdict=None)))
    (bars,) = (block for block in report.section("verdicts").blocks if isinstance(block, Bars))
    assert {bar.key: bar.value for bar in bars.bars} == {
        "highly input-bound": 1,
        "not input-bound": 1,
        "cannot judge": 1,
    }
    assert sum(bar.share for bar in bars.bars) == pytest.approx(1.0)


def test_traces_of_serving_are_neither_bound_nor_unknown():
    report = population(catalogue_of(run(), *[run(verdict="serving")] * 2))
    assert report.verdict.sentence.startswith("0 of 3 traces wait for input, 2 serve a model.")


def test_the_worst_are_first_and_no_more_than_asked():
    rows = (run(input_share=share) for share in (0.1, 0.9, None, 0.5))
    (by_input, *_) = grids(population(catalogue_of(*rows), top=2), "worst")
    assert [row[0] for row in by_input.rows] == [f"{1:016x}", f"{3:016x}"]


def test_what_was_not_measured_is_counted():
    report = population(catalogue_of(run(input_share=0.1), run(), run(verdict="cannot judge")))
    (grid,) = grids(report, "coverage")
    assert next(row[2:] for row in grid.rows if row[0] == "input_share") == (1, 2, pytest.approx(1 / 3))
    assert report.fact("coverage", "cannot_judge") == 1


def test_quarantined_traces_are_counted_by_their_reason():
    bad = {"state": "quarantined", "error": "unknown-format: nobody knows it", "source": "a.nvvp"}
    other = {"state": "quarantined", "error": "damaged: it ends in the middle", "source": "b.json"}
    report = population(catalogue_of(run(), bad, bad, other))
    assert [row["reason"] for row in report.rows("quarantined")] == ["unknown-format", "damaged"]
    assert [row["traces"] for row in report.rows("quarantined")] == [2, 1]
    assert report.rows("quarantined")[0]["error"] == "nobody knows it"
    assert "3 others could not be read." in report.verdict.sentence


def test_an_archive_without_a_trace_says_so():
    report = population(catalogue_of({"state": "quarantined", "error": "damaged: no", "source": "x"}))
    assert report.verdict.code == "empty"
    assert report.verdict.sentence == "There is no trace that can be asked. 1 trace quarantined."
    assert population(catalogue_of()).verdict.code == "empty"


def test_facts_tell_traces_from_ranks_from_runs():
    ranks = [run(trace_id="a", rank=n, job="j", recorded_ns=START_NS) for n in range(2)]
    facts = {fact.key: fact.value for fact in population(catalogue_of(*ranks, run())).run}
    assert (facts["traces"], facts["ranks"], facts["runs"], facts["gpu_ns"]) == (2, 3, 2, 60 * HOUR_NS)
    assert (facts["first"], facts["last"]) == ("2026-01-01", "2026-01-01")


@pytest.mark.parametrize("name", ["terminal", "json", "markdown", "csv"])
def test_every_renderer_shows_it_and_names_ids_whole(name):
    report = population(catalogue_of(run(input_share=0.5, source="x" * 300, findings=[finding()])))
    text = api.to_text(report, name, api.RenderOptions(80))
    assert f"{0:016x}" in text
    assert name != "terminal" or max(map(len, text.splitlines())) <= 80


def test_traces_without_a_device_are_told_from_those_whose_device_has_no_name():
    rows = (run(gpu=None, devices=0), run(gpu=None, devices=None), run(gpu=None), run())
    (*_, devices) = grids(population(catalogue_of(*rows)), "population")
    assert [(row[1], row[2]) for row in devices.rows] == [
        ("no device recorded", 2),
        ("H100", 1),
        ("model not stated", 1),
    ]


def test_time_of_tpus_is_device_time():
    report = population(catalogue_of(run(findings=[finding()]), run(gpu="TPU v6 Lite")))
    assert "would save at most 2.00 h of 40.0 h of device time recorded (5.0 %)" in report.verdict.sentence
    assert "Device time" in api.to_text(report, "terminal", api.RenderOptions(100))


def test_an_outlier_is_a_row_by_its_furthest_figure_and_programs_get_all():
    rows = [run(job="j", step_median=100 + n, peak_memory=100 + n) for n in range(8)]
    rows.append(run(job="j", step_median=300, peak_memory=400))
    shown, every = grids(population(catalogue_of(*rows)), "outliers")
    names = [column.name for column in shown.columns]
    (outlier,) = (dict(zip(names, row, strict=True)) for row in shown.rows)
    assert (outlier["trace_id"], outlier["metric"], outlier["others"]) == (f"{8:016x}", "peak_memory", 1)
    assert (len(every.rows), every.audience) == (2, "machine")


def test_the_reason_of_a_quarantine_is_told_in_full():
    bad = {"state": "quarantined", "error": f"damaged: {'it ends ' * 30}in the middle.", "source": "b.json"}
    text = api.to_text(population(catalogue_of(run(), bad)), "terminal", api.RenderOptions(80))
    assert " ".join(text.split()).count("it ends") == 30
