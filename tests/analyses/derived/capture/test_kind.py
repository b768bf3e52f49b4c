"""Kinds of captures: each kind on a trace of its own, its first sentence, and captures without such a sentence."""

from dataclasses import asdict

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.capture.kind import KIND_WORDS, TRAINS_NOTHING, capture_kind
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.run import analyze
from traceviz.trace.slicing import Selection, select

TORCH = {"framework": "PyTorch", "format": "kineto"}
NSYS = {"format": "nsys"}
TWO = [(0, 10, "k"), (500, 10, "m")]
COPIED = ("h2d", "pinned", "device", 8)
LOST = ("profiler-diagnostic", "warning", "nvprof: 2 records have invalid timestamps. Use a larger buffer.")
UNUSED = ("profiler-diagnostic", "warning", "Nsight Systems: No CUDA events collected. Does the process use CUDA?")
COUNTED = ("kernels-measured-with-counters", "warning", "Counters of kernels were measured.")
CAPTURE = [
    (0, 1, "cudaStreamBeginCapture"),
    *[(10 + i, 1, "cudaLaunchKernel") for i in range(6)],
    (20, 1, "cudaStreamEndCapture"),
    *[(30 + i, 1, "cudaLaunchKernel") for i in range(4)],
]
FORWARD = [
    (10, 400, "nn.Module: Net_0", "python"),
    (20, 30, "nn.Module: Linear_0", "python"),
    (25, 5, "aten::mm", "op"),
]
LOADER = [(i * 100, 90, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "input") for i in range(4)]

CASES = {
    "summary": (trace(totals=[("kernel", "gemm", 3, 30)], span_ns=0), "it holds totals by name"),
    "counters": (
        trace(kernels=TWO, notes=[("kernels-replayed", "warning", "measured")]),
        "the profiler ran 2 kernels one at a time and repeated each to measure it, so idle time is its own",
    ),
    "serving": (
        trace(host_ops=[(0, 90, "step[DECODE bs=32]", "annotation")], kernels=TWO, run=TORCH),
        "1 step of SGLang",
    ),
    "other-program": (
        trace(
            host_ops=[(0, 10, "solve", "annotation"), (20, 5, "wait", "annotation", {"thread_id": 1})],
            run={"producer": "Chrome trace format"},
        ),
        "2 lanes in the format of Chrome's trace viewer",
    ),
    "cpu-only": (trace(host_ops=FORWARD, run=TORCH), "no device work was captured"),
    "no-device-work": (
        trace(nvtx=[(0, 10, "solve")], os_calls=[(0, 5, "poll")], run=NSYS),
        "CUDA was not traced",
    ),
    "no-kernels": (
        trace(kernels=[], memcpy=[(0, 5, *COPIED), (9, 5, *COPIED)], memset=[(20, 1, 8)], notes=[LOST]),
        "only 3 copies and fills, and events were lost (nvprof: 2 records have invalid timestamps)",
    ),
    "filtered": (
        trace(kernels=[(0, 50, "ncclDevKernel_AllReduce", {"device_id": d}) for d in (0, 1)]),
        "2 collective kernels of 2 devices were recorded, and nothing else of devices or the host",
    ),
    "benchmark": (
        trace(host_ops=[(0, 90, "[param|torch.add|0|0|0|measure|forward]", "annotation")], kernels=TWO, run=TORCH),
        "annotated as such ([param|torch.add|0|0|0|measure|forward])",
    ),
    "graph-capture": (
        trace(cuda_api=CAPTURE, kernels=[(40 + i, 1, "km"[i % 2]) for i in range(4)]),
        "60.0 % of the launch calls record into a graph and run nothing",
    ),
    "start-up": (
        trace(kernels=[(600, 10, "k"), (700, 20, "m")], cuda_api=[(0, 590, "cudaFree")], span_ns=1_000),
        "the first device work starts 600 ns (60.0 %) into the 1.00 µs captured, and devices work in 3.0 %",
    ),
    "training": (
        trace(kernels=[(0, 10, "gemm"), (20, 10, "void cudnn::wgrad2d<float>(int)")]),
        "the kernel void cudnn::wgrad2d<float>(int) ran",
    ),
    "one-kernel": (
        trace(kernels=[*[(i * 100, 90, "void saxpy<float>(float*, int)") for i in range(5)], (499, 1, "init")]),
        "saxpy takes 99.8 % of kernel time (5 runs)",
    ),
    "one-pass": (
        trace(host_ops=[*FORWARD, (0, 1, *LOADER[0][2:])], kernels=[(100, 200, "k"), (310, 50, "m")], run=TORCH),
        "one batch is taken from the loader, but no backward pass and no optimizer were recorded",
    ),
    "forward-pass": (
        trace(host_ops=FORWARD, kernels=[(100, 200, "k"), (310, 50, "m")], run=TORCH),
        "1 call of Net, but no backward pass and no optimizer were recorded",
    ),
    "inference": (
        trace(
            host_ops=[*FORWARD, (450, 100, "nn.Module: Net_0", "python")],
            kernels=[(100, 200, "k"), (310, 200, "m")],
            run=TORCH,
        ),
        "2 calls of Net, but no backward pass and no optimizer were recorded",
    ),
    "unknown": (trace(kernels=TWO), "nothing in it tells"),
}


def test_every_kind_has_a_case():
    assert CASES.keys() == KIND_WORDS.keys()
    assert len(CASES) == 17


@pytest.mark.parametrize("key", CASES)
def test_a_capture_is_of_its_kind_and_says_what_shows_it(key):
    view, evidence = CASES[key]
    assert (capture_kind(view).key, capture_kind(view).evidence) == (key, evidence)
    facts = {fact.key: fact.value for fact in analyze(view.tables).facts("capture")}
    assert (facts["kind"], facts["kind_evidence"]) == (KIND_WORDS[key], evidence)


@pytest.mark.parametrize(("end", "key"), [(90, "graph-capture"), (30, "unknown")])
def test_a_capture_that_takes_most_of_the_time_counts_although_its_graph_runs_once(end, key):
    inside = [(1 + i, 1, "cudaLaunchKernel") for i in range(20)]
    calls = [(0, 1, "cudaStreamBeginCapture"), *inside, (end, 1, "cudaStreamEndCapture"), (95, 2, "cudaGraphLaunch")]
    view = trace(cuda_api=calls, kernels=[(97 + i, 1, "km"[i % 2]) for i in range(20)])
    assert capture_kind(view).key == key
    if key == "graph-capture":
        assert capture_kind(view).evidence == (
            "95.2 % of the launch calls record into a graph and run nothing; "
            "recording takes 77.8 % of the captured time"
        )


@pytest.mark.parametrize(("backend", "key"), [("nccl", "no-device-work"), ("gloo", "cpu-only"), (None, "cpu-only")])
def test_a_backend_of_devices_shows_that_there_are_some(backend, key):
    settings = [("distributedInfo.backend", backend)] if backend else [("distributedInfo.rank", "0")]
    view = trace(host_ops=[(0, 90, "aten::mm", "op")], run=TORCH, settings=settings)
    assert capture_kind(view).key == key
    report = analyze(view.tables)
    assert report.verdict.sentence.startswith("CPU only:") == (key == "cpu-only")
    assert ("through NCCL, so devices work, and they were not recorded" in report.verdict.sentence) == (
        backend == "nccl"
    )


@pytest.mark.parametrize("key", CASES)
def test_the_first_sentence_says_what_the_capture_is_where_it_is_no_training(key):
    view, evidence = CASES[key]
    report = analyze(view.tables)
    silent = {"summary", "serving", "training", "unknown"}
    opening = capture_kind(view).opening
    assert (evidence in opening) == (key not in silent)
    assert report.verdict.sentence.startswith(opening)
    assert not {"TV101", "TV102"} & {finding.code for finding in report.findings}
    if key in TRAINS_NOTHING | {"no-kernels", "start-up"}:
        assert "Mark the steps" not in repr(asdict(report))


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (trace(), "the capture holds no events at all"),
        (trace(samples=[(0, "program CPU", 1.0)]), "only samples of resources were recorded"),
        (trace(host_ops=FORWARD, notes=[COUNTED], cuda_api=[(0, 9, "cudaLaunchKernel")]), "measured with counters"),
        (trace(kernels=[], cuda_api=[(0, 9, "cudaLaunchKernel")] * 77), "the work of 77 launch calls was not recorded"),
        (
            trace(kernels=[], cuda_api=[], os_calls=[(0, 9, "poll")], notes=[UNUSED]),
            "the process did not use it",
        ),
        (trace(kernels=[], cuda_api=[(0, 9, "cudaMalloc")] * 3), "the device's API was called 3 times"),
        (trace(kernels=[], os_calls=[(0, 9, "poll")]), "a device would have been recorded, and nothing used one"),
    ],
    ids=["empty", "samples", "counters", "lost", "unused", "called", "recordable"],
)
def test_why_no_device_work_was_captured_is_said(view, why):
    sentence = analyze(view.tables).verdict.sentence
    assert sentence.startswith("No device work was captured: ")
    assert why in sentence.partition(". ")[0]


@pytest.mark.parametrize(
    "view",
    [
        trace(host_ops=[*FORWARD, (420, 9, "autograd::engine::evaluate_function: AddmmBackward0", "op")], kernels=TWO),
        trace(host_ops=[*FORWARD, *LOADER], kernels=[(i * 100 + 90, 9, "k") for i in range(4)], run=TORCH),
        trace(kernels=[(i * 100, 90, "k") for i in range(5)], nvtx=[(i * 100, 99, f"step {i}") for i in range(5)]),
        trace(kernels=[(i * 100, 9, "k") for i in range(5)], notes=[LOST]),
        trace(kernels=[(0, 90, "tune"), *[(100 + i * 2, 1, "ab"[i % 2]) for i in range(4)]]),
    ],
    ids=["learns", "loads", "marked", "lost", "one long run"],
)
def test_what_trains_or_may_have_lost_kernels_is_no_benchmark_and_no_forward_pass(view):
    assert capture_kind(view).key not in TRAINS_NOTHING
    assert capture_kind(view).opening == ""


@pytest.mark.parametrize(
    "host_ops",
    [[(i * 100, 90, "data loading", "annotation") for i in range(4)], [(0, 90, "train_step", "annotation")]],
    ids=["loads", "trains"],
)
def test_another_program_that_trains_or_loads_is_judged_like_any(host_ops):
    assert capture_kind(trace(host_ops=host_ops, run={"producer": "Chrome trace format"})).key == "cpu-only"


def test_a_window_of_a_training_is_no_forward_pass():
    whole = tables(host_ops=FORWARD, kernels=[(100, 200, "k"), (310, 50, "m")], run=TORCH)
    window = TraceView(select(whole, Selection(start_ns=5, end_ns=420)))
    assert (capture_kind(TraceView(whole)).key, capture_kind(window).key) == ("forward-pass", "unknown")


def test_who_names_the_steps_gets_an_answer_about_them():
    view = trace(kernels=[(i * 100, 90, "k") for i in range(5)], options=AnalysisOptions(input_range="load"))
    assert capture_kind(view).key == "one-kernel"
    sentence = analyze(view.tables, view.options).verdict.sentence
    assert "There is no input to judge." not in sentence
    assert "There is no input to judge." in analyze(view.tables).verdict.sentence


def test_what_repeats_in_a_benchmark_of_one_kernel_is_not_asked_to_be_marked():
    ranges = [(i * 100 + at, 40, name) for i in range(5) for at, name in ((0, "send"), (50, "receive"))]
    report = analyze(tables(kernels=[(i * 100 + 20, 60, "saxpy") for i in range(5)], nvtx=ranges))
    assert report.fact("steps", "count") == 4
    assert "What repeats may be a layer" in repr(asdict(report))
    assert "Mark the steps" not in repr(asdict(report))


@pytest.mark.parametrize(
    ("tables_of_host", "asks"),
    [
        ({"nvtx": [(0, 10, "MPI_Send"), (20, 10, "MPI_Recv")]}, False),
        ({"nvtx": [(0, 10, "MPI_Send"), (20, 10, "solve")]}, True),
        ({"os_calls": [(0, 10, "poll")]}, False),
        ({"host_ops": [(0, 10, "[param|torch.add|0|0|0]", "annotation")], "kernels": []}, False),
        ({"host_ops": [(0, 10, "aten::add", "op")], "kernels": []}, True),
    ],
    ids=["MPI", "own range", "calls", "benchmark", "framework"],
)
def test_without_a_device_only_programs_with_a_loop_of_their_own_are_asked_to_mark_it(tables_of_host, asks):
    report = analyze(tables(**tables_of_host, run=NSYS))
    assert report.fact("capture", "kind") == KIND_WORDS["no-device-work"]
    assert ("Mark the steps" in repr(asdict(report))) == asks


@pytest.mark.parametrize(
    ("times", "last"),
    [((50, 4, 60, 47), "GPU 1 spends 4 ns in them, the others 47 ns to 60 ns"), ((50, 40, 60, 47), "")],
)
def test_the_device_with_least_time_in_collectives_arrives_last(times, last):
    kernels = [(0, dur, "ncclKernel_AllGather", {"device_id": device}) for device, dur in enumerate(times)]
    kind = capture_kind(trace(kernels=kernels))
    assert kind.key == "filtered"
    assert last in kind.evidence
    assert ("it arrives last" in kind.evidence) == bool(last)
    report = analyze(trace(kernels=kernels).tables)
    assert (report.findings, "xposed" in report.verdict.sentence) == ((), False)
    headline = (  # 46 + 56 + 43 of 161 ns; without a late device, the kernel leads
        "One late device takes up to 90.1 % of collective time: GPU 1"
        if last
        else "One kernel takes 100.0 % of collective time: ncclKernel_AllGather"
    )
    assert (report.verdict.headline, report.verdict.consequence) == (headline, kind.remedy.rstrip("."))


def test_collectives_next_to_other_work_are_no_filtered_trace():
    kernels = [(0, 50, "ncclKernel_AllGather"), (60, 5, "gemm")]
    assert capture_kind(trace(kernels=kernels)).key != "filtered"
    assert capture_kind(trace(kernels=kernels[:1], memcpy=[(70, 5, *COPIED)])).key != "filtered"


def test_the_module_with_most_time_is_named_with_its_own_calls():
    encoders = [(at, 10, "nn.Module: Encoder_0", "python") for at in range(0, 50, 10)]
    denoisers = [(at, 100, f"nn.Module: Denoiser_{at % 2}", "python") for at in range(100, 400, 101)]
    view = trace(host_ops=encoders + denoisers, kernels=[(100, 200, "k"), (310, 200, "m")], run=TORCH)
    calls = "3 calls of Denoiser and 5 of other modules"
    assert capture_kind(view).evidence == f"{calls}, but no backward pass and no optimizer were recorded"
