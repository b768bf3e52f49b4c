"""Advice: only what is meant for the program of the trace."""

import re
from dataclasses import asdict

import pytest

from tests.analyses.builders import tables, trace
from tests.analyses.host_literals import EIGHT, TEN_STEPS, percent, recorded, series
from tests.analyses.pipelines import training
from traceviz.analyses.advice import HABITS, find_needless, fit_advice, inapplicable, say_once
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.input import dataloader, tfdata
from traceviz.analyses.input.tfdata import take_advice
from traceviz.analyses.run import analyze
from traceviz.report import Finding, Severity
from traceviz.report.findings.registry import record_of, records

NAMES = "Spread it. TensorFlow: MirroredStrategy; PyTorch: DDP; JAX: shards."


def advice(*steps, unwanted):
    finding = Finding("TV101", "x", Severity.INFO, "", (), steps, 0)
    return fit_advice(finding, unwanted).advice


@pytest.mark.parametrize(
    ("framework", "producer", "unwanted"),
    [
        ("tensorflow", "TensorFlow profiler", {"PyTorch", "JAX", "Nsight Systems"}),
        ("jax", "JAX profiler", {"PyTorch", "TensorFlow", "Nsight Systems"}),
        ("pytorch tensorflow jax", "NVIDIA Nsight Systems", set()),
        ("pytorch tensorflow jax", None, set()),
        ("", None, {"PyTorch", "TensorFlow", "JAX"}),
    ],
)
def test_a_trace_leaves_out_up_to_3_names_it_has_nothing_to_do_with(framework, producer, unwanted):
    assert inapplicable(framework.split(), producer) == unwanted


@pytest.mark.parametrize(
    ("kernel", "process", "likely"),
    [
        ("void at::native::vectorized<4>(int)", "a.out", {"pytorch"}),
        ("void tensorflow::BiasNHWC(int)", None, {"tensorflow"}),
        ("jacobi(float*)", "python3.8", {"pytorch", "tensorflow", "jax"}),
        ("jacobi(float*)", None, {"pytorch", "tensorflow", "jax"}),
        ("jacobi(float*)", "jacobi", set()),
        ("my_at::native::f()", "jacobi", set()),
    ],
)
def test_kernels_and_processes_tell_of_frameworks_where_the_trace_states_none(kernel, process, likely):
    assert likely_frameworks(trace(kernels=[(0, 5, kernel)], processes=[(0, process)])) == likely


def test_a_program_without_a_framework_gets_advice_for_none_and_marks_of_its_own_language():
    view = trace(
        kernels=[(i * 100, 20, "ab"[i % 2]) for i in range(10)],
        os_calls=[(i * 100 + 20, 79, "poll") for i in range(10)],
        processes=[(0, "solver")],
        run={"format": "nsys", "producer": "NVIDIA Nsight Systems"},
    )
    report = analyze(view.tables)
    assert [finding.code for finding in report.findings] == ["TV209"]
    texts = repr(asdict(report))
    assert not any(name in texts for name in ("PyTorch:", "TensorFlow:", "JAX:", "torch.", "nvtx.annotate"))
    assert "nvtxRangePush and nvtxRangePop" in report.verdict.sentence


@pytest.mark.parametrize(("frames", "asks"), [([], True), ([(0, 1_000, "a.py(3): main", "python")], False)])
def test_frames_of_python_that_were_recorded_are_not_asked_for(frames, asks):
    kernels = [(i * 100, 20, "ab"[i % 2]) for i in range(10)]
    run = {"framework": "PyTorch", "format": "kineto"}
    operators = [(0, 1_000, "aten::mm", "op")]
    report = analyze(tables(kernels=kernels, host_ops=[*frames, *operators], cuda_api=[], run=run))
    (bound,) = [finding for finding in report.findings if finding.code == "TV205"]
    assert "the operators with the most host time say what is slow" in bound.advice[1]
    assert ("with_stack=True" in repr(asdict(report))) == asks


@pytest.mark.parametrize(
    ("unwanted", "left"),
    [
        ((), NAMES),
        (("PyTorch", "JAX"), "Spread it. TensorFlow: MirroredStrategy."),
        (("TensorFlow", "PyTorch"), "Spread it. JAX: shards."),
        (("TensorFlow",), "Spread it. PyTorch: DDP; JAX: shards."),
        (("TensorFlow", "PyTorch", "JAX"), "Spread it."),
    ],
)
def test_of_three_parts_those_for_others_are_left_out(unwanted, left):
    assert advice(NAMES, unwanted=unwanted) == (left,)


def test_of_two_lines_the_one_for_others_goes_and_a_last_one_stays():
    assert advice("PyTorch: a.", "b.", unwanted=("PyTorch",)) == ("b.",)
    assert advice("PyTorch: a.", unwanted=("PyTorch",)) == ("PyTorch: a.",)


def test_the_report_of_a_tensorflow_capture_gives_no_advice_for_2_other_frameworks():
    steps = [(i * 100_000, 100_000, i) for i in range(4)]
    memory = [(0, "alloc", 99, {"address": 1, "in_use_bytes": 99, "available_bytes": 1, "memory": "device"})]
    kernels = [(i * 100_000, 40_000, "volta_sgemm_128x64_nn") for i in range(4)]
    run = {"framework": "TensorFlow", "producer": "TensorFlow profiler"}
    report = analyze(tables(steps=steps, kernels=kernels, memory_events=memory, host_ops=[], run=run))
    assert len(report.findings) >= 2
    words = " ".join(line for finding in report.findings for line in finding.advice)
    assert not any(name in words for name in ("PyTorch:", "JAX:", "Nsight Systems:"))


def test_a_batch_that_jax_waits_for_gets_0_lines_about_tf_data():
    assert advice(*take_advice("data loading"), "JAX: a thread.", unwanted=("TensorFlow",)) == ("JAX: a thread.",)


def left(*steps, needless):
    finding = Finding("TV101", "x", Severity.INFO, "", (), steps, 0)
    return fit_advice(finding, (), [re.compile(pattern) for pattern in needless]).advice


def of_rule(code, view, codes=()):
    finding = Finding(code, "x", Severity.INFO, "", (), record_of(code).advice, 0)
    return fit_advice(finding, (), find_needless(view, codes)).advice


@pytest.mark.parametrize(
    ("needless", "is_left"),
    [
        ((), ("Spread it. TensorFlow: a; PyTorch: b; c; JAX: d.",)),
        ((r"^PyTorch: b$",), ("Spread it. TensorFlow: a; PyTorch: c; JAX: d.",)),
        ((r"^PyTorch: c$",), ("Spread it. TensorFlow: a; PyTorch: b; JAX: d.",)),
        ((r"^PyTorch: [bc]$",), ("Spread it. TensorFlow: a; JAX: d.",)),
        ((r": [abcd]$",), ()),
        ((r"^Spread it",), ()),
    ],
)
def test_of_four_clauses_those_that_are_followed_go_and_an_opening_does_not_stay_alone(needless, is_left):
    assert left("Spread it. TensorFlow: a; PyTorch: b; c; JAX: d.", needless=needless) == is_left


def test_each_of_the_habits_leaves_out_at_least_1_line_that_some_rule_or_stage_gives():
    lines = [line for entry in records() for line in entry.advice]
    lines += [line for advice in tfdata._ADVICE.values() for line in advice]
    lines += [tfdata._GENERAL[0], *(line for kind in dataloader.LABELS for line in dataloader.loader_advice(kind))]
    idle = [
        habit.name for habit in HABITS if not any(left(line, needless=[habit.needless]) != (line,) for line in lines)
    ]
    assert idle == []


def test_one_thread_of_torch_is_not_advised_to_a_program_that_computes_with_1():
    view = trace(settings=list({**EIGHT, "collector.torch.threads.intra_op": "1"}.items()))
    assert of_rule("TV603", view) == (
        "OpenCV in workers: cv2.setNumThreads(0).",
        "Fewer loader workers, or a smaller private thread pool for tf.data.",
    )
    assert len(of_rule("TV603", trace(settings=[("collector.torch.threads.intra_op", "2")]))) == 4


def test_a_thread_for_each_of_4_cores_is_not_advised_twice():
    view = trace(settings=list({**EIGHT, "env.OMP_NUM_THREADS": "4"}.items()))
    assert not any("as many" in line for line in of_rule("TV606", view))
    assert "Threads: as many as physical cores" in of_rule("TV606", trace(settings=list(EIGHT.items())))[0]


@pytest.mark.parametrize(("value", "lines"), [("0", 4), ("1", 5), ("00", 5)])
def test_a_variable_with_the_value_0_that_is_advised_is_left_out(value, lines):
    assert len(of_rule("TV604", trace(settings=[("env.KMP_BLOCKTIME", value)]))) == lines


def test_fewer_workers_are_not_advised_to_a_loader_with_0():
    ops = [(0, 50, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "input")]
    assert not any("Fewer" in line for line in of_rule("TV603", trace(host_ops=ops)))


def test_stacks_that_were_recorded_are_not_asked_for_by_2_rules():
    frames = trace(host_ops=[(0, 1_000, "a.py(3): main", "python")])
    assert (len(of_rule("TV601", frames)), len(of_rule("TV607", frames))) == (2, 2)
    assert (len(of_rule("TV601", trace())), len(of_rule("TV607", trace()))) == (3, 3)


def mapped(kind, **properties):
    def record_batch(pipeline, start, _):
        pipeline.add(start, 800, "IteratorGetNext", "input")
        pipeline.add(start, 790, "Iterator::Root::Prefetch", id=1, buffered_elements=0)
        pipeline.add(start + 1, 700, f"Iterator::Root::Prefetch::{kind}", id=2, parent_id=1, **properties)

    return tables(**training(5, record_batch))


def advice_of(report, code):
    return next(finding.advice for finding in report.findings if finding.code == code)


class TestParallelMaps:
    def test_of_8_cores_are_not_advised_to_run_in_parallel(self):
        report = analyze(mapped("ParallelMapV2", parallelism=8, autotune="false", cpu_budget=8))
        assert advice_of(report, "TV101")[0] == tfdata.STILL_SLOW
        assert "num_parallel_calls" not in str(report)

    def test_of_2_elements_on_8_cores_are_told_to_use_more_and_not_that_they_are_parallel(self):
        report = analyze(mapped("ParallelMapV2", parallelism=2, autotune="false", cpu_budget=8))
        assert advice_of(report, "TV101")[0] == record_of("TV104").advice[0]
        assert "parallel already" not in str(report)

    def test_that_tf_data_made_of_a_sequential_one_are_said_to_be_so_on_2_elements(self):
        fused = {"name": "fused(Map:1,Batch:2)"}
        report = analyze(mapped("MapAndBatch", parallelism=2, autotune="true", cpu_budget=2, **fused))
        assert advice_of(report, "TV101")[0].startswith("tf.data itself maps 2 elements at once already: vectorise it")

    def test_that_are_sequential_are_told_once_to_run_in_parallel(self):
        report = analyze(mapped("Map", cpu_budget=8))
        assert advice_of(report, "TV101")[0].startswith("This map runs one example after the other")
        assert "parallel already" not in str(report)


@pytest.mark.parametrize(("codes", "lines"), [((), 3), (("TV601",), 2), (("TV602",), 2)])
def test_more_cores_are_not_advised_to_1_program_that_leaves_cores_idle(codes, lines):
    needless = [pattern.pattern for pattern in find_needless(trace(), codes)]
    assert len(left(*tfdata.stage_advice(("ParallelMap",)), needless=needless)) == lines


def test_a_report_of_16_threads_on_8_cores_names_no_cure_that_is_taken():
    view = recorded(
        percent("program CPU", *[800] * 10),
        series("program runnable threads", [16] * 10),
        percent("program waits for a core", *[800] * 10),
        steps=TEN_STEPS,
        settings={"env.OMP_NUM_THREADS": "1"},
    )
    assert advice_of(analyze(view.tables), "TV603")[0].startswith("OpenCV")


def copies(memory, kind="h2d"):
    source, target = (memory, "device") if kind == "h2d" else ("device", memory)
    return [(100 * i, 50, kind, source, target, 1_000_000) for i in range(4)]


@pytest.mark.parametrize("kind", ["h2d", "d2h"])
@pytest.mark.parametrize(("memory", "codes", "is_left"), [("pinned", (), False), ("pageable", (), True)])
def test_memory_that_is_pinned_is_not_advised_to_be(kind, memory, codes, is_left):
    lines = of_rule("TV303", trace(memcpy=copies(memory, kind), kernels=[(0, 10, "k")]), codes)
    assert any("pin_memory=True" in line for line in lines) == is_left


def test_a_few_pageable_copies_among_pinned_ones_keep_their_advice():
    view = trace(memcpy=[*copies("pinned"), (900, 50, "h2d", "pageable", "device", 1_000)], kernels=[(0, 10, "k")])
    assert any("pin_memory=True" in line for line in of_rule("TV303", view, ("TV302",)))


@pytest.mark.parametrize(("devices", "is_left"), [(1, False), (2, True)])
def test_one_rank_is_not_advised_to_tune_what_ranks_exchange(devices, is_left):
    view = trace(kernels=[(0, 10, "k", {"device_id": number}) for number in range(devices)])
    assert any("DistributedDataParallel" in line for line in of_rule("TV504", view)) == is_left


def test_an_advice_stands_once_and_the_later_finding_refers_to_it():
    first = Finding("TV101", "input-bound", Severity.ERROR, "", (), ("Load ahead.", "Load less."), 9)
    same = Finding("TV108", "single-process-loader", Severity.INFO, "", (), ("Load less.",), 0)
    other = Finding("TV109", "slow-loader-workers", Severity.INFO, "", (), ("Load less.", "More workers."), 0)
    lines = [finding.advice for finding in say_once([first, same, other])]
    assert lines == [
        ("Load ahead.", "Load less."),
        ("Single process loader: see the advice of TV101.",),
        ("More workers.",),
    ]


def test_findings_with_advice_of_their_own_keep_all_of_it():
    given = [Finding(code, "x", Severity.INFO, "", (), (code,), 0) for code in ("TV101", "TV108")]
    assert say_once(given) == given


@pytest.mark.parametrize(
    ("name", "category", "is_left"), [("aten::mm", "op", True), ("prepare.py(1): walk", "python", False)]
)
def test_work_that_is_no_operator_is_not_advised_to_be_compiled(name, category, is_left):
    kernels = [(0, 100, "gemm"), (900, 100, "add")]
    report = analyze(tables(kernels=kernels, host_ops=[(100, 800, name, category)], run={"framework": "PyTorch"}))
    (bound,) = [finding for finding in report.findings if finding.code == "TV205"]
    assert any("torch.compile" in line for line in bound.advice) == is_left
