"""From file to first sentence: copies that hold up the host, and first calls, are named as what they are."""

import pytest

from tests.parsers.kineto import files as k
from tests.support.reports import report_of
from traceviz import api
from traceviz.report import Bars

MS = 1_000  # microseconds


def metrics_every_step(call, copy_name):
    """Return ten steps of 10 ms, nine of them steady: 3 ms of kernels, then a copy waits 6 ms for late work."""
    events = []
    for n in range(10):
        begin, key = n * 10 * MS, 10 * n
        launches = [k.runtime("cudaLaunchKernel", begin + 10 + i * 10, 5, correlation=key + i) for i in range(3)]
        events += [
            k.step(n, begin, 10 * MS),
            *launches,
            k.kernel("gemm", begin + 100, 3 * MS, correlation=key),
            k.frame("/job/train.py(41): log_metrics", begin + 2 * MS, 7_950),
            k.annotation("## metrics ##", begin + 2 * MS, 7_900),
            k.op("aten::item", begin + 2_050, 7_800),
            k.runtime(call, begin + 2_100, 7_700, correlation=key + 5),
            k.kernel("reduce", begin + 9_700, 50, correlation=key + 1),
            k.copy(begin + 9_780, 10, name=copy_name, correlation=key + 5, size=4),
        ]
    return k.trace(events, header={"deviceProperties": [k.gpu(0, "NVIDIA A100")]})


@pytest.mark.parametrize(
    ("call", "copy_name", "words"),
    [
        ("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", "copies to pageable host memory"),
        ("hipMemcpyWithStream", "CopyDeviceToHost", "copies to host memory"),
    ],
)
def test_a_copy_that_blocks_leads_the_first_sentence_with_its_place(tmp_path, call, copy_name, words):
    path = tmp_path / "metrics.pt.trace.json"
    path.write_bytes(metrics_every_step(call, copy_name))
    report = api.report_on(path)
    (finding,) = (finding for finding in report.findings if finding.code == "TV206")
    assert finding.share == pytest.approx(0.66, abs=0.01)
    assert (
        f"waits in {words} (9 calls, {call}, mostly in metrics > aten::item, train.py:41 log_metrics)"
        in finding.message
    )
    assert finding.advice[0].startswith("PyTorch: loss.item()")
    assert report.verdict.sentence.startswith("Blocking copies: in 66.")
    assert "kernel launch" not in report.verdict.sentence


RANK0 = "facebookresearch__HolisticTraceAnalysis__rank0.json.gz"


def test_five_copies_of_145_ms_are_synchronisation_and_no_launches(public_cases):
    """Counted from the file: the main thread is in cudaMemcpyAsync for 458 of 692 ms in which the device idles."""
    report = report_of(public_cases / "kineto" / RANK0)
    (section,) = (section for section in report.sections if section.slug == "breakdown")
    times = {bar.key: bar.value for block in section.blocks if isinstance(block, Bars) for bar in block.bars}
    assert (times["synchronisation"], times["kernel_launch"]) == (458_930_000, 230_139_000)
    (finding,) = (finding for finding in report.findings if finding.code == "TV206")
    assert (finding.cost_ns, "sparse_data_dist > aten::to" in finding.message) == (457_833_000, True)
    assert report.verdict.sentence.startswith("Blocking copies: in 42.6 % of the steady step time (458 ms)")


@pytest.mark.parametrize(
    ("folder", "name", "words"),
    [
        ("nsys", "GindaChen__nsys-ai__mock.sqlite", "mostly first use (79.1 %"),
        ("nvprof", "syed-ahmed__TensorFlow-Tutorial__out.nvvp", "First use: in 92.3 %"),
        ("nvprof", "josiahdavis__profiling-lm__net.sql", "cudaLaunchKernel, and 2.27 s are the work of the profiler"),
        (
            "kineto",
            "facebookresearch__HolisticTraceAnalysis__benchmark_simple_add_trace.json.gz",
            "19.6 s of it in cudaDeviceGetStreamPriorityRange, which creates the context of the device",
        ),
    ],
)
def test_first_calls_are_named_and_are_neither_launches_nor_allocation(public_traces, folder, name, words):
    assert words in report_of(public_traces / folder / name).verdict.sentence
