"""The input verdict: thresholds, stages, what it is worth, and no false certainty."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz import annotate
from traceviz.analyses.derived.host.input_fetches import HOOKS, RECORDED
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.input.input_pipeline import InputPipelineAnalysis
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.run import analyze
from traceviz.collectors.inject.traceviz_inject.profilers import nvtx_ranges
from traceviz.report import Grid, Severity
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select

ANALYSIS = InputPipelineAnalysis()


def steps_with_load(load, *, name="data loading", steps=10, **tables):
    """Return steps of 1000 ns that load for ``load`` ns and then compute."""
    ranges = [(i * 1000, 1000, f"step {i}") for i in range(steps)]
    loads = [(i * 1000, load, name) for i in range(steps)] if load else []
    kernels = [(i * 1000 + load, 1000 - load, "sgemm") for i in range(steps)]
    return trace(nvtx=ranges + loads, kernels=kernels, **tables)


@pytest.mark.parametrize(
    ("load", "verdict"),
    [
        (49, "not input-bound"),
        (50, "moderately input-bound"),
        (199, "moderately input-bound"),
        (200, "highly input-bound"),
        (950, "highly input-bound"),
    ],
)
def test_thresholds_below_at_and_above(load, verdict):
    assert ANALYSIS.run(steps_with_load(load)).verdict.value == verdict


def test_the_bound_on_the_gain_is_the_step_without_its_wait():
    result = ANALYSIS.run(steps_with_load(500))
    assert (result.input_share, result.best_case_speedup) == (0.5, 2.0)


def test_the_stage_is_the_outer_range_and_names_what_is_inside_it():
    inner = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    view = trace(
        nvtx=[(i * 1000, 1000, f"step {i}") for i in range(5)]
        + [(i * 1000, 600, "Data loading") for i in range(5)]
        + [(i * 1000 + 5, 590, inner) for i in range(5)],
        kernels=[(i * 1000 + 600, 400, "k") for i in range(5)],
    )
    stage = ANALYSIS.run(view).stages[0]
    assert (stage.name, stage.inside, stage.calls, stage.self_ns) == ("Data loading", inner, 5, 3000)
    assert "num_workers > 0" in stage.advice


def test_only_loading_that_the_device_waits_for_counts():
    view = trace(
        nvtx=[(i * 1000, 1000, f"step {i}") for i in range(5)] + [(i * 1000, 900, "load batch") for i in range(5)],
        kernels=[(i * 1000, 980, "k") for i in range(5)],
    )
    result = ANALYSIS.run(view)
    assert (result.verdict.value, result.wait_ns) == ("not input-bound", 0)


def test_exposed_copies_of_input_count_as_input():
    view = trace(
        nvtx=[(i * 1000, 1000, f"step {i}") for i in range(5)],
        memcpy=[(i * 1000, 300, "h2d", "pinned", "device", 1) for i in range(5)],
        kernels=[(i * 1000 + 300, 700, "k") for i in range(5)],
    )
    result = ANALYSIS.run(view)
    assert (result.verdict.value, result.input_share, result.stages[0].name) == (
        "highly input-bound",
        0.3,
        "copy to device",
    )


def fetching(name):
    """Return steps of 1000 ns with three layers: a copy of 300 ns, in a range of this name, and 30 ns of computing."""
    at = [(i * 1000 + 330 * k, i * 10 + k) for i in range(5) for k in range(3)]
    return tables(
        nvtx=[(i * 1000, 1000, f"step {i}") for i in range(5)] + [(t, 20, f"{name} (layers.{n % 10})") for t, n in at],
        cuda_api=[(t, 10, "cudaMemcpyAsync", {"correlation_id": n}) for t, n in at]
        + [(t + 20, 5, "cudaLaunchKernel", {"correlation_id": 100 + n}) for t, n in at],
        memcpy=[(t, 300, "h2d", "pinned", "device", (2 + n % 10) << 20, {"correlation_id": n}) for t, n in at],
        kernels=[(t + 300, 30, "sgemm", {"correlation_id": 100 + n}) for t, n in at],
    )


def test_parameters_that_are_fetched_from_the_host_are_no_input_and_lead_the_report():
    report = analyze(fetching("FSDP::pre_forward"))
    assert report.verdict.code == "not-input-bound"
    assert report.verdict.sentence.startswith("Parameter transfer")
    assert [(finding.code, round(finding.share, 3)) for finding in report.findings] == [("TV505", 0.9)]


def test_copies_that_nothing_explains_are_stated_and_do_not_count_as_input():
    """The first of each step is where a batch would be."""
    result = ANALYSIS.run(TraceView(fetching("exchange")))
    assert (result.verdict.value, result.input_share, result.other_copies_ns) == ("highly input-bound", 0.3, 5 * 600)
    (prose,) = [block.text for block in ANALYSIS.describe(result).blocks if "nothing shows" in str(block)]
    assert "60.0 %" in prose
    assert "--input-range" in prose


def test_without_ranges_a_waiting_host_is_only_a_suspicion():
    view = trace(
        nvtx=[(i * 1000, 1000, f"step {i}") for i in range(5)],
        kernels=[(i * 1000 + 700, 300, "k") for i in range(5)],
        os_calls=[(i * 1000, 600, "poll") for i in range(5)],
    )
    result = ANALYSIS.run(view)
    assert result.verdict.value == "possibly input-bound"
    assert [(s.name, s.self_ns) for s in result.stages] == [
        ("host blocked in poll", 3000),
        ("unrecorded host time", 500),
    ]
    (finding,) = ANALYSIS.judge(result)
    assert (finding.code, finding.cost_ns) == ("TV102", 3500)


@pytest.mark.parametrize(
    ("kernels", "copy", "verdict"),
    [
        ([700], 690, "possibly input-bound"),  # one pause of 690, which ends at a copy
        ([700], 5, "cannot judge"),  # the copy of the batch comes before the pause
        ([200, 400, 600, 800], 100, "cannot judge"),  # 100 of the 500 that the device idles
    ],
)
def test_only_a_pause_before_the_copy_of_a_batch_is_a_suspicion(kernels, copy, verdict):
    view = trace(
        nvtx=[(i * 1000, 1000, f"step {i}") for i in range(5)],
        kernels=[(i * 1000 + at, 300 if len(kernels) == 1 else 100, "k") for i in range(5) for at in kernels],
        memcpy=[(i * 1000 + copy, 10, "h2d", "pageable", "device") for i in range(5)],
    )
    assert ANALYSIS.run(view).verdict.value == verdict


@pytest.mark.parametrize(("length", "name"), [(400, "aten::normal_"), (200, "unrecorded host time")])
def test_a_suspicion_names_the_operator_in_which_most_of_the_time_is(length, name):
    view = trace(
        nvtx=[(i * 1000, 1000, f"step {i}") for i in range(5)],
        kernels=[(i * 1000 + 700, 300, "k") for i in range(5)],
        host_ops=[(i * 1000 + 50, length, "aten::normal_", "op") for i in range(5)],
    )
    result = ANALYSIS.run(view)
    assert [(stage.name, stage.self_ns) for stage in result.stages] == [(name, 3500)]


@pytest.mark.parametrize(("steps", "verdict"), [(1, "cannot judge"), (2, "cannot judge"), (3, "possibly input-bound")])
def test_one_or_two_steps_are_not_enough_for_a_suspicion(steps, verdict):
    view = trace(
        steps=[(i * 1000, 1000, i) for i in range(steps)],
        kernels=[(i * 1000 + at, 150, name) for i in range(steps) for at, name in ((700, "k"), (850, "m"))],
        os_calls=[(i * 1000, 600, "poll") for i in range(steps)],
    )
    result = ANALYSIS.run(view)
    assert (result.verdict.value, "so few steps" in str(result.reason)) == (verdict, verdict == "cannot judge")


def test_what_the_device_computes_in_is_named_where_no_sentence_before_speaks_of_it():
    view = trace(steps=[(0, 1000, 0)], kernels=[(700, 300, "k")], os_calls=[(0, 600, "poll")])
    assert "The device computes in 30.0 %." in analyze(view.tables).verdict.sentence


def test_steps_that_the_window_cuts_are_said_to_be_cut_and_not_to_be_missing():
    steps = [(i * 1000, 1000, i) for i in range(5)]
    whole = trace(steps=steps, kernels=[(i * 1000, 900, "k") for i in range(5)]).tables
    result = ANALYSIS.run(TraceView(select(whole, Selection(start_ns=1500, end_ns=2900))))
    assert result.reason.text == (
        "the window holds no whole step: all are cut by its edges, so there is no step time to compare the input with"
    )
    assert result.remedy.text == "Choose an earlier --from or a later --to."


def test_the_users_input_range_is_believed():
    view = steps_with_load(0, steps=5)
    ranges = [(i * 1000, 1000, f"step {i}") for i in range(5)] + [(i * 1000, 400, "grab") for i in range(5)]
    kernels = [(i * 1000 + 400, 600, "k") for i in range(5)]
    assert ANALYSIS.run(view).verdict.value == "not input-bound"
    options = AnalysisOptions(input_range="^grab$")
    assert ANALYSIS.run(trace(nvtx=ranges, kernels=kernels, options=options)).verdict.value == "highly input-bound"


def test_no_steps_cannot_be_judged_and_raise_nothing():
    result = ANALYSIS.run(trace(kernels=[(0, 10, "k")], nvtx=[(0, 5, "data loading")]))
    assert result.verdict.value == "cannot judge"
    assert result.input_share is None
    assert ANALYSIS.judge(result) == ()


@pytest.mark.parametrize(("device", "advice"), [(True, "Copy from pinned memory, on a stream"), (False, "Put arrays")])
def test_pinned_memory_is_advised_only_if_there_is_a_device(device, advice):
    steps = [(i * 100, 100, i) for i in range(4)]
    puts = {"host_ops": [(i * 100 + 10, 20, "DevicePut", "transfer") for i in range(4)]}
    copies = [(i * 100 + 10, 20, "h2d", "unknown", "device", 64) for i in range(4)]
    work = {"kernels": [(i * 100 + 50, 40, "k") for i in range(4)], "memcpy": copies}
    result = ANALYSIS.run(trace(steps=steps, **(work if device else puts)))
    assert (result.stages[0].name, result.copy_ns) == ("copy to device", 80)
    assert result.stages[0].advice.startswith(advice)


def test_a_host_only_capture_without_ranges_cannot_be_judged():
    view = trace(nvtx=[(i * 100, 100, f"step {i}") for i in range(5)], os_calls=[(0, 400, "poll")])
    assert ANALYSIS.run(view).verdict.value == "cannot judge"


def test_a_host_only_capture_with_ranges_is_judged_and_says_it_is_a_bound():
    view = trace(nvtx=[r for i in range(5) for r in ((i * 100, 100, f"step {i}"), (i * 100, 40, "data loading"))])
    result = ANALYSIS.run(view)
    assert (result.verdict.value, result.input_share, result.best_case_speedup) == ("highly input-bound", 0.4, None)
    assert result.caveat == "no device work was recorded, so this is an upper bound"
    (finding,) = ANALYSIS.judge(result)
    assert result.caveat in finding.message
    grids = [block for block in ANALYSIS.describe(result).blocks if isinstance(block, Grid)]
    (waited,) = (column.label for column in grids[0].columns if column.name == "self_ns")
    assert waited == "Steps waited"  # of a device that was not recorded nothing is known


def test_launches_without_device_work_are_named_as_a_gap_of_the_capture():
    ranges = [r for i in range(5) for r in ((i * 100, 100, f"step {i}"), (i * 100, 40, "data loading"))]
    result = ANALYSIS.run(trace(nvtx=ranges, cuda_api=[(50, 5, "cudaLaunchKernel")]))
    assert result.caveat == "1 launch calls were recorded and no device work, so this is an upper bound"


@pytest.mark.parametrize(
    ("ranges", "options", "reason"),
    [
        ([], None, "No data-loading ranges were recorded to tell."),
        ([], AnalysisOptions(input_range="grab"), "No range of the training thread matches --input-range 'grab'."),
        ([(0, 400, "data loading", {"thread_id": 1})], None, 'Ranges such as "data loading" run on another thread'),
    ],
)
def test_why_no_range_counts_as_input_is_said(ranges, options, reason):
    steps = [(i * 1000, 1000, f"step {i}") for i in range(5)]
    view = trace(nvtx=steps + ranges, kernels=[(i * 1000 + 900, 100, "k") for i in range(5)], options=options)
    assert ANALYSIS.run(view).unranged.startswith(reason)


def test_a_healthy_loop_raises_nothing():
    assert ANALYSIS.judge(ANALYSIS.run(steps_with_load(20))) == ()


def test_severity_follows_the_share():
    (moderate,) = ANALYSIS.judge(ANALYSIS.run(steps_with_load(100)))
    (high,) = ANALYSIS.judge(ANALYSIS.run(steps_with_load(600)))
    assert (moderate.severity, high.severity) == (Severity.WARNING, Severity.ERROR)
    assert high.cost_ns == 10 * 600


def test_an_input_range_deep_inside_another_is_no_stage_of_its_own():
    ranges = [
        r
        for i in range(5)
        for r in (
            (i * 1000, 1000, f"step {i}"),
            (i * 1000, 600, "data loading"),
            (i * 1000 + 10, 580, "wrapper"),
            (i * 1000 + 20, 500, "fetch batch"),
        )
    ]
    result = ANALYSIS.run(trace(nvtx=ranges, kernels=[(i * 1000 + 600, 400, "k") for i in range(5)]))
    assert [(stage.name, stage.self_ns) for stage in result.stages] == [("data loading", 3000)]


def test_a_tpus_wait_for_infeed_is_a_stage_but_for_what_the_programs_own_loading_explains():
    view = trace(
        steps=[(i * 100, 100, i) for i in range(4)],
        kernels=[
            item
            for i in range(4)
            for item in (
                (i * 100, 40, "infeed.1", {"category": "infeed"}),
                (i * 100 + 40, 60, "fusion.1", {"category": "fusion"}),
            )
        ],
        host_ops=[(i * 100, 10, "IteratorGetNext:IteratorGetNext", "input") for i in range(4)],
        devices=[(0, "v5e", {"kind": "tpu"})],
    )
    result = ANALYSIS.run(view)
    infeed = next(stage for stage in result.stages if stage.name == "infeed")
    assert (infeed.calls, infeed.total_ns, infeed.self_ns) == (4, 160, 120)
    assert sum(stage.self_ns for stage in result.stages) == result.wait_ns == 160
    (finding,) = [f for f in ANALYSIS.judge(result) if f.code == "TV101"]
    assert all(fact.value is not None for fact in finding.evidence)
    assert finding.advice[0].startswith("Prefetch the input: prefetch(AUTOTUNE)")


TAKE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("name", "domain", "operation", "stages"),
    [
        ("data loading", "traceviz", TAKE, ["single-process DataLoader (num_workers=0)"]),  # our hook's yields
        ("data loading", "", TAKE, ["data loading", "single-process DataLoader (num_workers=0)"]),  # the program's
        ("data loading", "program", TAKE, ["data loading", "single-process DataLoader (num_workers=0)"]),
        ("load data", "program", "load data", ["load data"]),  # one call reports to both
    ],
)
def test_a_wait_that_two_profilers_recorded_counts_once(name, domain, operation, stages):
    # NVTX        |-------------------| 400      the hook is around what the framework records
    # operation    |-----------------|  390
    category = "input" if operation == TAKE else "annotation"
    view = trace(
        steps=[(i * 1000, 1000, i, {"thread_id": 0}) for i in range(5)],
        nvtx=[(i * 1000, 400, name, {"domain": domain}) for i in range(5)],
        host_ops=[(i * 1000 + 5, 390, operation, category) for i in range(5)],
        run={"framework": "PyTorch"},
    )
    result = InputPipelineAnalysis().run(view)
    assert [stage.name for stage in result.stages] == stages
    assert sum(stage.self_ns for stage in result.stages) == result.wait_ns == (1950 if len(stages) == 1 else 2000)


@pytest.mark.parametrize(("covered", "kinds"), [(199, {"NVTX range", "DataLoader"}), (200, {"DataLoader"})])
def test_a_hooks_range_yields_where_operations_cover_half_of_it(covered, kinds):
    view = trace(
        steps=[(i * 1000, 1000, i, {"thread_id": 0}) for i in range(5)],
        nvtx=[(i * 1000, 400, "data loading", {"domain": "traceviz"}) for i in range(5)],
        host_ops=[(i * 1000, covered, TAKE, "input") for i in range(5)],
        run={"framework": "PyTorch"},
    )
    assert {stage.kind for stage in InputPipelineAnalysis().run(view).stages} == kinds


def test_of_5_waits_of_a_loop_all_yield_though_of_2_short_ones_the_hook_takes_the_larger_part():
    waits = [(40, 10), (400, 390), (40, 10), (400, 390), (400, 390)]
    ranges = [*waits, (40, 0)]  # the last step was recorded by NVTX only
    view = trace(
        steps=[(i * 1000, 1000, i, {"thread_id": 0}) for i in range(6)],
        nvtx=[(i * 1000, whole, "data loading", {"domain": "traceviz"}) for i, (whole, _) in enumerate(ranges)],
        host_ops=[(i * 1000, recorded, TAKE, "input") for i, (_, recorded) in enumerate(waits)],
        run={"framework": "PyTorch"},
    )
    stages = {stage.kind: (stage.calls, stage.total_ns) for stage in InputPipelineAnalysis().run(view).stages}
    assert stages == {"DataLoader": (5, 1190), "NVTX range": (1, 40)}


def test_the_2_domains_are_those_in_which_the_hooks_and_the_library_make_ranges():
    assert (HOOKS, RECORDED) == (nvtx_ranges.DOMAIN, annotate.DOMAIN) == ("traceviz", "program")


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        (
            "not-started",
            "Collector torch: Nothing was recorded: it ended after 8 steps; use --steps 4:8.",
            "use --steps 4",
        ),
        ("disk-full", "The disk is full: 3 kB are free. Recordings may be cut.", "The disk is full: 3 kB are free"),
        ("run-failed", "The program failed with exit code 2; what was recorded is shown.", "failed with exit code 2."),
    ],
)
def test_a_run_without_steps_says_why_none_was_recorded_and_not_how_to_mark_them(code, message, reason):
    report = analyze(tables(os_calls=[(0, 5, "read")], notes=[(code, "warning", message)], run={"format": "run"}))
    assert reason in report.verdict.sentence
    assert "NVTX" not in report.verdict.sentence
    assert {finding.code for finding in report.findings} <= {"TV607"}
