"""Time of programs without a device: families of operators, and everything else."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.program.cpu_steps import CpuStepsAnalysis
from traceviz.report import Severity, Skipped

ANALYSIS = CpuStepsAnalysis()


def steps(count=2):
    return [(i * 1_000, 1_000, i) for i in range(count)]


def result(*operations, **literals):
    """Return two steps of 1000 ns with these operations in each."""
    rows = [(i * 1_000 + row[0], *row[1:]) for i in range(2) for row in operations]
    return ANALYSIS.run(trace(steps=steps(), host_ops=rows, **literals))


def times(found):
    assert found.groups["time_ns"].sum() == found.judged_ns
    return dict(found.groups.select("group", "time_ns").iter_rows())


def test_the_operators_that_take_the_time_are_named_by_what_they_compute():
    found = result(
        (0, 400, "aten::conv2d", "op"),
        (10, 390, "aten::mkldnn_convolution", "op"),
        (400, 340, "aten::convolution_backward", "op"),
        (740, 200, "aten::mm", "op"),
    )
    (finding,) = ANALYSIS.judge(found)
    facts = {fact.key: fact.value for fact in finding.evidence}
    assert (finding.code, facts["time_ns"], facts["share"]) == ("TV606", 1_480, 0.74)
    assert (finding.severity, finding.cost_ns) == (Severity.INFO, 0)  # a hint: what could be gained is not known
    assert finding.message == (
        "Convolution takes 74.0 % of the steady step time: aten::mkldnn_convolution 39.0 %, "
        "aten::convolution_backward 34.0 %."
    )
    assert "channels_last" in finding.advice[0]


@pytest.mark.parametrize(("bits", "is_said"), [("64", True), ("32", False)])
def test_parameters_of_64_bits_are_said_with_advice_for_32(bits, is_said):
    settings = [("process.parameter_bits", bits)]
    (finding,) = ANALYSIS.judge(result((0, 740, "aten::mm", "op"), settings=settings))
    assert finding.message.startswith("Matrix products take 74.0 % of the steady step time in 64-bit floats") is is_said
    assert finding.advice[0].startswith("Train in 32 bits") is is_said


@pytest.mark.parametrize(("dur", "codes"), [(199, []), (200, ["TV606"])])
def test_a_family_is_named_from_a_fifth_of_the_time_on(dur, codes):
    assert [finding.code for finding in ANALYSIS.judge(result((0, dur, "aten::mm", "op")))] == codes


def test_nodes_of_onnx_runtime_are_called_by_their_operators():
    found = result((0, 600, "/conv1/Conv_kernel_time", "op"), (600, 300, "/fc/Gemm_kernel_time", "op"))
    assert times(found) == {"convolution": 1_200, "matmul": 600, "unexplained": 200}
    assert found.operators["type"].to_list() == ["Conv", "Gemm"]


def test_operators_of_another_thread_count_while_the_main_thread_only_waits_for_them():
    # backward runs on a thread of autograd's, while the main thread is in the annotation around it
    found = result(
        (0, 800, "## backward ##", "annotation"),
        (100, 600, "aten::mm", "op", {"thread_id": 1}),
        (800, 100, "aten::add_", "op"),
    )
    assert times(found) == {"matmul": 1_200, "range": 400, "unexplained": 200, "elementwise": 200}


def test_what_attention_and_recurrent_layers_call_is_theirs():
    found = result(
        (0, 500, "aten::lstm", "op"),
        (10, 400, "aten::addmm", "op"),
        (500, 300, "aten::scaled_dot_product_attention", "op"),
        (510, 200, "aten::bmm", "op"),
        (800, 200, "aten::mm", "op"),
    )
    assert times(found) == {"recurrent": 1_000, "attention": 600, "matmul": 400}


def test_what_the_optimizer_calls_is_the_optimizers():
    found = result((0, 600, "Optimizer.step#Adam.step", "annotation"), (100, 400, "aten::mul_", "op"))
    assert times(found) == {"optimizer": 1_200, "unexplained": 800}
    assert ANALYSIS.judge(found)[0].message == (
        "Optimizer takes 60.0 % of the steady step time: aten::mul_ 40.0 %, Optimizer.step#Adam.step 20.0 %."
    )


def test_waiting_for_input_is_input_whatever_runs_in_it():
    found = result(
        (0, 500, "data loading", "annotation"), (100, 300, "train.py(7): read", "python"), (500, 500, "aten::mm", "op")
    )
    assert times(found) == {"input": 1_000, "matmul": 1_000}
    assert [finding.code for finding in ANALYSIS.judge(found)] == ["TV606"]


def test_python_that_takes_the_time_is_named_with_its_place():
    found = result((0, 900, "train.py(5): step", "python"), (100, 700, "json/decoder.py(332): decode", "python"))
    (finding,) = ANALYSIS.judge(found)
    assert (finding.code, finding.evidence[1].value) == ("TV607", 1_800)
    assert finding.message == (
        "90.0 % of the steady step time is spent in Python functions, most of all in decode (decoder.py) (70.0 %)."
    )


def test_ranges_of_nvtx_have_what_nothing_more_precise_explains():
    nvtx = [
        (i * 1_000 + start, dur, name) for i in range(2) for start, dur, name in ((50, 700, "fit"), (100, 500, "loss"))
    ]
    found = ANALYSIS.run(trace(steps=steps(), nvtx=nvtx))
    assert times(found) == {"range": 1_400, "unexplained": 600}
    (finding,) = ANALYSIS.judge(found)
    assert "ranges with nothing more precise in them, most of all in loss (50.0 %, in" not in finding.message
    assert finding.message.endswith("most of all in loss (50.0 %).")


@pytest.mark.parametrize("name", ["model_forward", "## backward ##", "epoch"])
def test_a_range_around_operators_is_the_place_of_what_was_not_recorded(name):
    found = result((0, 1_000, name, "annotation"), (100, 300, "aten::addmm", "op"))
    assert dict(found.groups.select("label", "time_ns").iter_rows()) == {
        "Between operators": 1_400,
        "Matrix products": 600,
    }
    first, second = ANALYSIS.judge(found)
    assert (first.code, second.code) == ("TV607", "TV606")
    said = f"between operators, with nothing more precise recorded, most of all in {name.strip('# ')} (70.0 %)."
    assert first.message == f"70.0 % of the steady step time is spent {said}"
    assert "with_stack=True" in first.advice[0]


def test_a_job_that_exchanges_data_through_nccl_is_not_one_of_the_cpu():
    rows = [(0, 400, "aten::addmm", "op")]
    assert isinstance(result(*rows, settings=[("distributedInfo.backend", "nccl")]), Skipped)
    for backend in ("gloo", "cpu:gloo,cuda:nccl", "mpi"):  # the second is the default, also without devices
        assert not isinstance(result(*rows, settings=[("distributedInfo.backend", backend)]), Skipped)


@pytest.mark.parametrize(
    ("name", "advice"), [("aten::_slow_conv2d_forward", "run without oneDNN"), ("aten::mkldnn_convolution", "bfloat16")]
)
def test_convolutions_without_onednn_are_advised_to_have_it(name, advice):
    (finding,) = ANALYSIS.judge(result((0, 1_000, "aten::conv2d", "op"), (10, 980, name, "op")))
    assert advice in finding.advice[0]


def test_without_steps_all_of_the_capture_counts():
    found = ANALYSIS.run(trace(host_ops=[(0, 600, "aten::mm", "op"), (900, 100, "aten::add_", "op")]))
    assert (found.judged_ns, times(found)) == (1_000, {"matmul": 600, "unexplained": 300, "elementwise": 100})


@pytest.mark.parametrize(
    "literals",
    [
        {"host_ops": [(0, 100, "aten::mm", "op")], "kernels": [(0, 100, "gemm")]},
        {"host_ops": [(0, 100, "aten::mm", "op")], "cuda_api": [(0, 10, "cudaLaunchKernel")]},
        {"host_ops": []},
    ],
    ids=["device", "launches", "nothing"],
)
def test_programs_of_a_device_and_captures_of_nothing_have_no_section(literals):
    assert isinstance(ANALYSIS.run(trace(span_ns=1_000, **literals)), Skipped)
