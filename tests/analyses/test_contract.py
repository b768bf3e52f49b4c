"""Requirements of every analysis: empty, minimal, shuffled and shifted traces, declared needs, stable names."""

from functools import cache

import pyarrow as pa
import pytest

from tests.analyses.builders import tables
from tests.analyses.literals.capture.whole_run import RUN
from tests.analyses.literals.host.host_limits import LIMITED
from tests.analyses.literals.host.host_time import RUN as STACKS
from tests.analyses.literals.program.quality import STATED
from traceviz.analyses.capture.capture import Capture
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.registry import ANALYSES, DEVICE_WORK, ENTRIES, analyses, entries
from traceviz.analyses.run import analyze
from traceviz.core.errors import UsageError
from traceviz.parsers.ranks.merge import combine
from traceviz.report import Facts, Grid, Skipped
from traceviz.testing import AnalysisContract
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

STABLE = {
    "whole_run": (
        {"run_ns", "steps", "steps_share", "startup_ns", "recording_ns", "processes"},
        {"part", "label", "time_ns", "share_of_run", "where"},
    ),
    "measures": (
        {"outcome", "reason", "exit_code", "signal", "batch"},
        {"key", "label", "value", "unit", "better", "count", "low", "high", "about"},
    ),
    "run": ({"name", "tags", "command", "status", "machine", "recorded_by", "exit_code", "duration_ns"}, set()),
    "quality": (
        {"metrics"},
        {
            *("name", "label", "split", "better", "first", "last", "best", "best_step", "best_epoch", "count"),
            "source",
        },
    ),
    "capture": ({"span_ns", "devices", "processes", "steps_source"}, set()),
    "totals": (
        {"device_total_ns", "device_calls", "api_total_ns", "api_calls"},
        {"name", "kind", "calls", "total_ns", "share", "mean_ns", "min_ns", "max_ns"},
    ),
    "cuda_api": (
        {"api_total_ns", "calls"},
        {
            *("name", "domain", "calls", "total_ns", "share_of_api", "share_of_wall", "startup_ns", "steady_ns"),
            *("exposed_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns"),
        },
    ),
    "kernels": (
        {"total_ns", "calls", "classified_share", "tensor_core_share"},
        {
            *("name", "family", "precision", "tensor_core", "calls", "total_ns", "share_of_kernel_time"),
            *("mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns"),
        },
    ),
    "copies": (
        {"bytes", "total_ns", "exposed_ns"},
        {"kind", "src_memory", "dst_memory", "calls", "bytes", "total_ns", "bandwidth"},
    ),
    "device_use": (
        {"busy_ns", "idle_ns", "span_ns", "utilisation"},
        {"device", "busy_ns", "idle_ns", "utilisation", "concurrent_ns"},
    ),
    "gpu_efficiency": (
        {"utilisation", "sm_efficiency", "occupancy", "small_grid_share", "known_share", "judged_ns"},
        {
            *("device", "utilisation", "sm_efficiency", "occupancy", "blocks_per_sm", "small_grid_share"),
            *("span_utilisation", "kernel_ns", "judged_kernel_ns", "judged_ns"),
        },
    ),
    "host_time": (
        {"steps_ns", "outside_ns", "samples"},
        {
            "place",
            "label",
            "called",
            "time_ns",
            "share_of_part",
            "samples",
            "share_low",
            "share_high",
            "kind",
            "location",
        },
    ),
    "what_if": (
        {"step_ns"},
        {
            "label",
            "part",
            "share_of_steps",
            "not_proven",
            "step_ns",
            "low_ns",
            "high_ns",
            "low_speedup",
            "high_speedup",
        },
    ),
    "idle_gaps": ({"gaps", "idle_ns"}, {"start_ns", "dur_ns", "device", "cause", "range"}),
    "host_waits": (
        {"idle_share", "unexplained_share"},
        {"cause", "where", "label", "time_ns", "share_of_judged", "calls", "total_ns", "kind", "location"},
    ),
    "host_limits": (
        {"samples", "step_ns", "gil_threads", "collections", "calls_per_step", "call_ns"},
        {"what", "share_of_steps", "low", "high", "samples", "location", "share_of_part", "leaf", "group"},
    ),
    "steps": (
        {"count", "warmup", "median_ns", "p95_ns", "source", "confidence"},
        {"step", "start_ns", "dur_ns", "warmup"},
    ),
    "breakdown": ({"basis", "step_ns"}, {"class", "total_ns", "share_of_step"}),
    "input_pipeline": (
        {"verdict", "input_share", "best_case_speedup", "stage"},
        {"stage", "kind", "self_ns", "share_of_input", "advice"},
    ),
    "serving": (
        {"engine", "steps", "step_ns", "covered_share", "busy_share"},
        {
            *("phase", "steps", "requests", "tokens", "total_ns", "median_ns", "tokens_per_s", "busy_share"),
            *("idle_ns", "host_gap_ns", "host_ns"),
        },
    ),
    "ranges": (set(), {"domain", "name", "calls", "total_ns", "self_ns", "device_span_ns", "device_busy_ns"}),
    "os_calls": (set(), {"name", "calls", "total_ns", "median_ns", "max_ns"}),
    "launch": ({"launches", "api_ns", "queue_median_ns"}, set()),
    "communication": ({"total_ns", "exposed_ns", "overlap_share"}, {"name", "calls", "total_ns"}),
    "host_collectives": ({"total_ns", "exposed_ns", "calls"}, {"name", "calls", "total_ns", "exposed_ns"}),
    "ranks": (
        {"count", "world_size", "slowest_factor", "lost_ns", "collectives", "wait_ns"},
        {
            *("rank", "steps", "median_step_ns", "mean_step_ns", "own_ns", "busy_share", "compute_share", "slowest"),
            *("communication_share", "input_share", "score", "kernels", "api_ns", "judged_ns"),
        },
    ),
    "framework_ops": (
        {"ops", "calls", "host_self_ns", "device_ns", "eager_share"},
        {"type", "calls", "host_ns", "host_self_ns", "device_ns", "share_of_device_op_time", "eager_share"},
    ),
    "operators": (
        {"operators", "calls", "host_self_ns", "device_ns", "attributed_share", "eligible_share", "tensor_core_share"},
        {
            *("name", "calls", "calls_per_step", "device_self_ns", "share_of_device_op_time", "device_ns"),
            *("host_self_ns", "host_ns", "tensor_core_eligible", "tensor_core_share", "backward_ns"),
        },
    ),
    "lanes": (
        {"lanes", "events", "busiest_share", "no_lane_share"},
        {"lane", "events", "busy_ns", "busy_share", "largest", "largest_ns"},
    ),
    "cpu_steps": (
        {"judged_ns", "operator_share"},
        {"label", "time_ns", "share_of_judged", "calls", "largest", "largest_ns", "where", "group", "kind"},
    ),
    "modules": (
        {"modules", "source", "host_ns", "device_ns", "backward_ns", "inside_share"},
        {
            *("path", "name", "level", "calls", "device_ns", "device_self_ns", "backward_ns", "share_of_device_time"),
            *("host_ns", "host_self_ns", "share_of_host_time"),
        },
    ),
    "precision": (
        {"total_ns", "full_share", "unknown_share"},
        {"type", "precision", "calls", "total_ns", "share_of_matrix_time"},
    ),
    "devices": (
        {"visible", "computing", "small_grid_share", "memory_used_share"},
        {"device", "kernels", "kernel_ns", "small_grid_share", "sm_count", "memory_bytes"},
    ),
    "device_programs": (
        {"devices", "executions", "window_ns", "compute_share", "infeed_share", "idle_share"},
        {
            *("device", "executions", "steps", "step_ns", "compute_ns", "infeed_ns", "outfeed_ns", "collective_ns"),
            *("async_wait_ns", "idle_ns"),
        },
    ),
    "launch_contention": ({"launch_ns", "contended_ns", "private_threads"}, set()),
    "compilation": (
        {"total_ns", "warmup_ns", "steady_ns", "steps_with"},
        {"name", "calls", "total_ns", "steady_calls", "steady_ns"},
    ),
    "memory": (
        {"peak_bytes", "peak_at_ns", "capacity_bytes", "used_share"},
        {"pool", "peak_bytes", "peak_at_ns", "capacity_bytes", "used_share", "allocations", "frees", "growth_bytes"},
    ),
    "host": ({"cpu_mean", "rss_max", "threads_max"}, {"metric", "mean", "p95", "max"}),
}
"""Fact keys and columns of the first grid that scripts rely on."""


def busy_trace(shift=0):
    """Return six steps of 100 µs with one of everything; the first step is slow."""
    us = 1000
    nvtx, kernels, memcpy, memset, api, os_calls = [], [], [], [], [], []
    host_ops, device_ops, memory = [], [], []
    start = shift
    for i in range(6):
        nvtx += [(start, 100 * us, f"step {i}"), (start, 30 * us, "data loading")]
        api += [
            (start + 30 * us, 5 * us, "cudaLaunchKernel", {"correlation_id": 3 * i}),
            (start + 36 * us, 2 * us, "cudaMemcpyAsync", {"correlation_id": 3 * i + 1}),
            (start + 80 * us, 15 * us, "cudaStreamSynchronize", {"correlation_id": 3 * i + 2}),
        ]
        memcpy += [(start + 37 * us, 3 * us, "h2d", "pageable", "device", 4096, {"correlation_id": 3 * i + 1})]
        memset += [(start + 40 * us, us, 64)]
        shape = {"blocks_per_sm": 2.0, "achieved_occupancy": 0.5}
        kernels += [(start + 42 * us, 40 * us, "ampere_sgemm_128x64_tn", {"correlation_id": 3 * i, **shape})]
        kernels += [(start + 85 * us, 5 * us, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")]
        os_calls += [(start + us, 20 * us, "poll")]
        host_ops += [
            (start + 2 * us, 10 * us, "Iterator::Root::Map", "pipeline", {"thread_id": 2}),
            (start + 30 * us, 9 * us, "dense/MatMul:MatMul", "op", {"thread_id": 1}),
            (start + 29 * us, 11 * us, "forward", "annotation", {"thread_id": 1}),
        ]
        device_ops += [(start + 42 * us, 48 * us, "jit_train", "module")]
        memory += [
            (start + 31 * us, "alloc", 256, {"address": i, "in_use_bytes": 1256, "available_bytes": 744}),
            (start + 91 * us, "free", 256, {"address": i, "in_use_bytes": 1000, "available_bytes": 1000}),
        ]
        start += 100 * us
    parts = {
        "nvtx": nvtx,
        "kernels": kernels,
        "memcpy": memcpy,
        "memset": memset,
        "cuda_api": api,
        "os_calls": os_calls,
        "host_ops": host_ops,
        "device_ops": device_ops,
        "memory_events": memory,
        "totals": [("kernel", "gemm", 3, 300), ("runtime", "cudaMalloc", 2, 90), ("unified_memory", "Host To Device")],
    }
    return tables(**parts, overhead=[(start, us, "flush")], span_ns=shift + 620 * us)


def two_ranks(shift=0):
    """Return the busy trace as that of two ranks; the second is a little late."""
    parts = [busy_trace(shift), busy_trace(shift + 3_000)]
    return TraceTables(combine([{name: part.arrow(name) for name in part} for part in parts], ["rank0", "rank1"]))


def sampled():
    """Return the busy trace with samples of its host: three busy cores of four."""
    busy = busy_trace()
    cpu = [(at * 20_000, "program CPU", 300.0, {"unit": "%", "device_id": None}) for at in range(1, 31)]
    more = tables(samples=cpu, settings=[("machine.cores", "4")])
    return busy.replace({name: more.arrow(name) for name in ("samples", "settings")})


def collected():
    """Return the busy trace as ``traceviz collect`` recorded it."""
    stated = {
        "run.name": "cnn",
        "run.status": "finished",
        "run.command": "python",
        "run.duration_ns": "900000",
        "run.exit.code": "0",
        "tag.batch": "64",
        "machine.cores": "4",
        "collector.nsys.state": "recorded",
    }
    settings = tables(settings=[(*row, {"process_id": None}) for row in stated.items()])
    return busy_trace().replace({"settings": settings.arrow("settings")})


def served():
    """Return the busy trace as an engine's: prefill, then decode."""
    names = ["execute_context_1(100)_generation_0(0)", *["execute_context_0(0)_generation_2(2)"] * 5]
    ranges = tables(nvtx=[(100_000 * i, 80_000, name) for i, name in enumerate(names)])
    return busy_trace().replace({"nvtx": ranges.arrow("nvtx")})


def of_mpi():
    """Return the busy trace of a program that reduces with MPI while its device idles."""
    ranges = tables(nvtx=[(100_000 * i + 92_000, 6_000, "MPI_Allreduce") for i in range(6)])
    return busy_trace().replace({"nvtx": ranges.arrow("nvtx")})


def without_device():
    """Return the busy trace of a program that runs on the CPU."""
    busy = busy_trace()
    return TraceTables({name: busy.arrow(name) for name in busy if name not in {*DEVICE_WORK, "cuda_api"}})


def of_another_program():
    """Return events of a program that no known profiler recorded."""
    events = [(i * 1_000, 500, "solve", "annotation", {"thread_id": i % 2}) for i in range(6)]
    return tables(host_ops=events, run={"producer": "Chrome trace format"})


def whole_run():
    """As the section's literal has it."""
    return RUN


def host_limits():
    """As the section's literal has it."""
    return LIMITED


def host_time():
    """As the section's literal has it."""
    return STACKS


def of_quality():
    """As the section's literal has it."""
    return STATED


TRACES = {
    "quality": of_quality,
    "host_limits": host_limits,
    "whole_run": whole_run,
    "host_time": host_time,
    "run": collected,
    "host": sampled,
    "serving": served,
    "host_collectives": of_mpi,
    "cpu_steps": without_device,
    "lanes": of_another_program,
    "ranks": two_ranks,
}


def test_the_registry_knows_each_analysis_by_its_own_slug():
    assert tuple(analysis.slug for analysis in analyses()) == ANALYSES.names()
    assert len(ANALYSES.names()) == len(STABLE)
    assert [entry.slug for entry in entries(["kernels", "run"])] == ["run", "kernels"]
    with pytest.raises(UsageError, match="kernel"):
        entries(["kernel"])


def test_the_registry_names_tables_of_the_contract():
    assert DEVICE_WORK == schema.DEVICE_WORK
    assert {name for entry in ENTRIES for name in entry.tables} <= set(schema.TABLES)
    assert {name for entry in ENTRIES for name in entry.columns} <= set(schema.TABLES)


class TestEveryAnalysis(AnalysisContract):
    @pytest.fixture(params=ENTRIES, ids=lambda entry: entry.slug, autouse=True)
    def _entry(self, request):
        self.entry = request.param

    def trace(self):
        return TRACES.get(self.entry.slug, busy_trace)()

    def test_it_has_the_stable_facts_and_columns(self):
        analysis = self.entry.load()
        blocks = analysis.describe(analysis.run(TraceView(self.trace()))).blocks
        facts, columns = STABLE[self.entry.slug]
        assert facts <= {fact.key for b in blocks if isinstance(b, Facts) for fact in b.facts}
        grids = [block for block in blocks if isinstance(block, Grid)]
        assert columns <= ({column.name for column in grids[0].columns} if grids else set())

    def test_it_reads_only_the_tables_that_it_declares(self):
        if self.entry.slug != "capture":  # it counts the tables of the trace
            super().test_it_reads_only_the_tables_that_it_declares()

    def test_it_is_skipped_with_a_reason_where_a_needed_table_is_absent(self):
        report = analyze(TraceTables({}), sections=[self.entry.slug])
        needs = self.entry.needs
        assert not needs or report.skipped == (
            Skipped(self.entry.slug, f"the capture has no {' or '.join(needs)} table", needs),
        )


def test_every_analysis_has_its_stable_names_listed():
    assert set(STABLE) == {analysis.slug for analysis in analyses()}


@cache
def busy_report():
    return analyze(busy_trace())


def test_a_clock_that_starts_later_changes_no_step_figure():
    reports = [busy_report(), analyze(busy_trace(777_000))]
    for slug in ("breakdown", "steps", "kernels", "copies"):
        facts = [[f for b in r.section(slug).blocks if isinstance(b, Facts) for f in b.facts] for r in reports]
        assert facts[0] == facts[1]


def test_findings_come_with_the_most_time_at_stake_first():
    findings = busy_report().findings
    assert [f.cost_ns for f in findings] == sorted((f.cost_ns for f in findings), reverse=True)
    assert [finding.code for finding in findings[:2]] == ["TV101", "TV405"]


def test_the_verdict_names_the_stage_and_the_bound_on_the_gain():
    verdict = busy_report().verdict
    assert verdict.code == "highly-input-bound"
    assert '"data loading"' in verdict.sentence
    assert "at best 1.5× as fast" in verdict.sentence


def test_a_verdict_on_inferred_steps_says_so():
    report = analyze(
        tables(
            kernels=[(i * 1000 + k * 320, 300, f"k{k}") for i in range(20) for k in range(3)], cuda_api=[], os_calls=[]
        )
    )
    assert report.verdict.sentence.endswith("The steps were inferred from repeating kernels.")


def test_a_part_of_the_sections_gives_no_verdict_on_the_input():
    assert analyze(busy_trace(), sections=["cuda_api"]).verdict.code == "partial"


@pytest.mark.parametrize(
    ("framework", "unsaid"),
    [
        ("PyTorch", {"framework_ops", "device_programs", "launch_contention"}),
        ("TensorFlow", {"operators", "modules"}),
        ("JAX", {"operators", "modules", "launch_contention"}),
        (None, set()),
    ],
)
def test_what_only_another_framework_has_is_not_said_to_be_missing(framework, unsaid):
    of_frameworks = {"framework_ops", "device_programs", "launch_contention", "operators", "modules"}
    skipped = {skip.slug for skip in analyze(tables(run={"framework": framework})).skipped}
    assert of_frameworks - skipped == unsaid
    assert {"totals", "ranks"}.isdisjoint(skipped)
    (reason,) = analyze(tables(run={"framework": "PyTorch"}), sections=["framework_ops"]).skipped
    assert reason.slug == "framework_ops"


def test_a_reported_loss_is_a_warning_without_time_at_stake():
    losses = tables(kernels=[(0, 10, "k")], notes=[("profiler-diagnostic", "error", "CUPTI dropped 5 records")])
    (finding,) = [f for f in analyze(losses).findings if f.code == "TV901"]
    assert (finding.severity, finding.cost_ns) == ("warning", 0)
    assert finding.evidence[0].value == "CUPTI dropped 5 records"


def test_events_are_what_happened_and_not_the_6_rows_about_them():
    view = tables(
        host_ops=[(0, 10, "a:Add", "op"), (20, 5, "b:Add", "op")],
        op_args=[(0, "id", {"integer": 1}), (1, "id", {"integer": 2})],
        steps=[(0, 10, 0), (10, 20, 1)],
        samples=[(0, "power", 1.0)],
        settings=[("jax_version", "0.1")],
    )
    facts = {fact.key: fact.value for b in analyze(view).section("capture").blocks for fact in b.facts}
    assert facts["events"] == 2
    assert "overhead_ns" not in facts


@pytest.mark.parametrize(
    ("threads", "processes"), [([(0, 1, "python")], 1), ([(0, 0, "sh"), (1, 1, "python")], 2), ([], 3)]
)
def test_processes_of_which_there_are_samples_only_are_none_of_the_capture(threads, processes):
    everyone = [(number, name, {"pid": 10 + number}) for number, name in enumerate(("nsys", "python", "nsys-tee"))]
    view = TraceView(tables(samples=[(0, "cpu", 5.0)], threads=threads, processes=everyone))
    assert Capture().run(view).processes == processes


@pytest.mark.parametrize(("steps", "codes"), [([], []), ([(i * 100, 100, i) for i in range(5)], ["TV902"])])
def test_overhead_is_a_finding_only_where_there_is_work_that_it_holds_up(steps, codes):
    view = tables(os_calls=[(100, 400, "read")], overhead=[(0, 100, "start")], steps=steps)
    assert [finding.code for finding in analyze(view).findings if finding.code == "TV902"] == codes


@pytest.mark.parametrize(
    ("overhead", "codes"), [((500, 51), ["TV902"]), ((500, 50), []), ((0, 500), []), ((1000, 600), [])]
)
def test_profiler_overhead_counts_above_its_threshold_while_no_device_works_within_the_judged_time(overhead, codes):
    view = tables(kernels=[(0, 500, "k"), (900, 100, "k")], overhead=[(*overhead, "flush", {"thread_id": None})])
    assert [f.code for f in analyze(view).findings if f.code == "TV902"] == codes


def test_overhead_of_6_percent_without_device_work_is_of_the_captured_time():
    view = tables(span_ns=1000, host_ops=[(0, 1000, "work")], overhead=[(0, 60, "flush")])
    (finding,) = (finding for finding in analyze(view).findings if finding.code == "TV902")
    assert finding.message == "The profiler itself took 6.0 % of the captured time."


def test_captured_time_is_2_seconds_in_the_section_as_in_the_head_though_nothing_happened():
    report = analyze(tables(span_ns=2_000_000_000, samples=[(0, "program CPU", 1.0)]))
    assert report.fact("capture", "events") == 0
    head = {fact.key: fact.value for fact in report.run}
    assert (report.fact("capture", "span_ns"), head["span_ns"]) == (2_000_000_000, 2_000_000_000)


def test_run_facts_join_devices_of_one_name():
    two = [(0, 1, "k"), (0, 1, "k", {"device_id": 1})]
    for kernels, words in ((two, "2 × A100"), (two[:1], "2 × A100 (1 used)"), ([], "2 × A100")):
        report = analyze(tables(kernels=kernels, devices=[(0, "A100"), (1, "A100")]))
        assert {fact.key: fact.value for fact in report.run}["devices"] == words


def test_run_facts_name_1_device_without_a_number_and_2_kinds_apart():
    for names, words in ((["A100"], "A100"), (["A100", "T4", "A100"], "2 × A100, T4"), ([None], None)):
        report = analyze(tables(devices=list(enumerate(names))))
        assert {fact.key: fact.value for fact in report.run}.get("devices") == words


def test_arrow_and_parquet_give_the_same_report(tmp_path):
    from traceviz.trace.tables import load, save

    save(busy_trace(), tmp_path / "t")
    assert analyze(load(tmp_path / "t")) == busy_report()
    assert isinstance(load(tmp_path / "t").arrow("kernels"), pa.Table)
