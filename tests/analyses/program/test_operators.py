"""PyTorch operators: own and total times on host and device, recursion, backward work, what names tensor cores."""

import polars as pl
import pytest

from tests.analyses import sections
from tests.analyses.builders import trace
from traceviz.analyses.derived.calls.op_names import parsed_ops, torch_matrix_op
from traceviz.analyses.device.precision import PrecisionAnalysis
from traceviz.analyses.program.framework_ops import FrameworkOpsAnalysis
from traceviz.analyses.program.operators import OperatorsAnalysis
from traceviz.report import Grid, Skipped

PYTORCH = {"framework": "PyTorch"}


def section(view):
    analysis = OperatorsAnalysis()
    return analysis.describe(analysis.run(view))


def rows(view, number=0):
    return {row["name"]: row for row in sections.grids(OperatorsAnalysis(), view)[number]}


def facts(view):
    return sections.facts(OperatorsAnalysis(), view)


def shown(view):
    grid = next(block for block in section(view).blocks if isinstance(block, Grid))
    return {column.name for column in grid.columns if column.importance < 9}


def linear(**extra):
    """Return ``aten::linear`` of 100 ns around ``aten::addmm`` of 40 ns that launches a kernel of 500 ns."""
    return {
        "host_ops": [(0, 100, "aten::linear"), (10, 40, "aten::addmm")],
        "cuda_api": [(20, 15, "cudaLaunchKernel", {"correlation_id": 7})],
        "kernels": [(200, 500, "ampere_bf16_s16816gemm_bf16_128x64", {"correlation_id": 7})],
        "run": PYTORCH,
        **extra,
    }


def test_host_self_time_leaves_out_operators_inside_and_the_calls_made_directly():
    operators = rows(trace(**linear()))
    assert (operators["aten::linear"]["host_ns"], operators["aten::linear"]["host_self_ns"]) == (100, 60)
    assert (operators["aten::addmm"]["host_ns"], operators["aten::addmm"]["host_self_ns"]) == (40, 25)


def test_device_time_is_own_where_the_operator_launches_and_total_for_all_around_it():
    operators = rows(trace(**linear()))
    assert (operators["aten::addmm"]["device_self_ns"], operators["aten::addmm"]["device_ns"]) == (500, 500)
    assert (operators["aten::linear"]["device_self_ns"], operators["aten::linear"]["device_ns"]) == (0, 500)
    assert operators["aten::addmm"]["share_of_device_op_time"] == 1.0
    assert list(operators) == ["aten::addmm", "aten::linear"]


def test_a_driver_call_inside_a_runtime_call_is_left_out_of_the_host_time_once():
    api = [(20, 15, "cudaLaunchKernel", {"correlation_id": 7}), (22, 10, "cuLaunchKernel", {"domain": "driver"})]
    assert rows(trace(**linear(cuda_api=api)))["aten::addmm"]["host_self_ns"] == 25


def test_ranges_and_python_frames_between_operators_are_looked_through():
    view = trace(
        **linear(
            host_ops=[
                (0, 100, "aten::linear"),
                (5, 60, "my range", "annotation"),
                (8, 50, "net.py(3): forward", "python"),
                (10, 40, "aten::addmm"),
            ]
        )
    )
    operators = rows(view)
    assert set(operators) == {"aten::linear", "aten::addmm"}
    assert operators["aten::linear"]["host_self_ns"] == 60


def test_ranges_that_old_traces_file_as_operators_are_none():
    names = ("Optimizer.step#SGD.step", "DistributedDataParallel.forward", "aten::add")
    assert set(rows(trace(host_ops=[(0, 100, name) for name in names], run=PYTORCH))) == {"aten::add"}


def test_an_operator_inside_one_of_its_name_counts_once_in_total():
    view = trace(
        host_ops=[(0, 100, "aten::to"), (10, 50, "aten::to"), (20, 10, "aten::copy_"), (70, 10, "aten::empty")],
        cuda_api=[(22, 5, "cudaMemcpyAsync", {"correlation_id": 1})],
        memcpy=[(40, 300, "h2d", "pageable", "device", 64, {"correlation_id": 1})],
        run=PYTORCH,
    )
    copy = rows(view)["aten::to"]
    assert (copy["calls"], copy["host_ns"], copy["host_self_ns"], copy["device_ns"]) == (2, 100, 80, 300)


def test_an_operator_that_does_nothing_but_call_itself_is_one_call():
    operators = rows(trace(host_ops=[(0, 100, "aten::div"), (10, 80, "aten::div"), (20, 10, "aten::to")], run=PYTORCH))
    division = operators["aten::div"]
    assert (division["calls"], division["host_ns"], division["host_self_ns"]) == (1, 100, 90)


def test_a_launch_belongs_to_the_operator_of_its_own_thread_and_process():
    view = trace(
        **linear(
            host_ops=[(0, 100, "aten::mm"), (0, 100, "aten::add", "op", {"thread_id": 1, "process_id": 1})],
            cuda_api=[
                (20, 15, "cudaLaunchKernel", {"correlation_id": 7}),
                (20, 15, "cudaLaunchKernel", {"correlation_id": 7, "thread_id": 1, "process_id": 1}),
            ],
            kernels=[(200, 500, "k", {"correlation_id": 7}), (200, 30, "k", {"correlation_id": 7, "process_id": 1})],
        )
    )
    operators = rows(view)
    assert (operators["aten::mm"]["device_ns"], operators["aten::add"]["device_ns"]) == (500, 30)


def test_a_launch_at_the_instant_between_two_operators_belongs_to_the_later():
    view = trace(**linear(host_ops=[(0, 20, "aten::mm"), (20, 30, "aten::add")]))
    assert rows(view)["aten::add"]["device_self_ns"] == 500


def test_work_without_a_launch_call_goes_to_the_operator_that_the_trace_names():
    view = trace(**linear(cuda_api=[], kernels=[(200, 500, "k", {"op": "aten::mm"}), (800, 100, "k")]))
    matmul = rows(view)["aten::mm"]
    assert (matmul["device_self_ns"], matmul["calls"], matmul["host_ns"]) == (500, 0, None)
    assert facts(view)["attributed_share"] == pytest.approx(500 / 600)


def test_matrix_operators_and_tensor_cores_are_shares_of_kernel_time():
    view = trace(
        **linear(
            host_ops=[(0, 100, "aten::linear"), (10, 40, "aten::addmm"), (200, 50, "aten::add")],
            cuda_api=[
                (20, 15, "cudaLaunchKernel", {"correlation_id": 7}),
                (210, 15, "cudaLaunchKernel", {"correlation_id": 8}),
            ],
            kernels=[
                (200, 300, "ampere_bf16_s16816gemm_bf16_128x64", {"correlation_id": 7}),
                (600, 100, "vectorized_elementwise_kernel<float>", {"correlation_id": 8}),
            ],
        )
    )
    assert (facts(view)["eligible_share"], facts(view)["tensor_core_share"]) == (0.75, 0.75)
    eligible = {name: row["tensor_core_eligible"] for name, row in rows(view).items()}
    assert eligible == {"aten::addmm": True, "aten::linear": True, "aten::add": False}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[(name, True) for name in ("aten::mm", "aten::addmm_", "aten::bmm", "aten::baddbmm", "aten::_convolution")],
        *[(name, True) for name in ("aten::conv_transpose2d", "aten::cudnn_convolution_backward_weight")],
        *[(name, True) for name in ("aten::_flash_attention_forward", "aten::scaled_dot_product_attention")],
        *[(name, True) for name in ("AddmmBackward0", "CudnnConvolutionBackward", "aten::linear", "aten::_scaled_mm")],
        ("autograd::engine::evaluate_function: MmBackward0", True),
        *[(name, False) for name in ("aten::add", "aten::_convert_indices_from_csr_to_coo", "aten::linalg_norm")],
        *[(name, False) for name in ("LgammaBackward0", "aten::mean", "aten::dropout", "my::mm")],
    ],
)
def test_operators_that_tensor_cores_can_compute_are_known_by_name(name, expected):
    names = pl.DataFrame({"name": [name]})
    assert names.select(torch_matrix_op("name")).item() is expected


def backward_pass(**extra):
    """Return two forward operators numbered 5 and 6, and their gradients on another thread, of 70 and 40 ns."""
    numbers = [(0, 5, 0), (1, 5, 0), (2, 6, 0), (3, 6, 1), (4, 6, 1), (5, 5, 1)]
    return {
        "host_ops": [
            (0, 30, "aten::linear"),
            (10, 15, "aten::addmm"),
            (40, 20, "aten::relu"),
            (100, 40, "autograd::engine::evaluate_function: ReluBackward0", "op", {"thread_id": 1}),
            (105, 30, "ReluBackward0", "op", {"thread_id": 1}),
            (150, 40, "AddmmBackward0", "op", {"thread_id": 1}),
        ],
        "op_args": [
            args
            for op, sequence, thread in numbers
            for args in ((op, "Sequence number", {"integer": sequence}), (op, "Fwd thread id", {"integer": thread}))
        ],
        "cuda_api": [
            (110, 5, "cudaLaunchKernel", {"correlation_id": 1, "thread_id": 1}),
            (160, 5, "cudaLaunchKernel", {"correlation_id": 2, "thread_id": 1}),
        ],
        "kernels": [(200, 70, "k", {"correlation_id": 1}), (300, 40, "k", {"correlation_id": 2})],
        "run": PYTORCH,
        **extra,
    }


def test_backward_work_is_counted_once_and_belongs_to_the_last_operator_with_its_number():
    backward = {name: row["backward_ns"] for name, row in rows(trace(**backward_pass())).items()}
    assert (backward["aten::relu"], backward["aten::addmm"], backward["aten::linear"]) == (70, 40, 40)
    assert (backward["ReluBackward0"], backward["AddmmBackward0"]) == (0, 0)


def test_a_number_that_a_later_forward_pass_uses_again_does_not_take_earlier_backward_work():
    base = backward_pass()
    later = (500, 10, "aten::relu_")
    args = [*base["op_args"], (6, "Sequence number", {"integer": 6}), (6, "Fwd thread id", {"integer": 0})]
    operators = rows(trace(**backward_pass(host_ops=[*base["host_ops"], later], op_args=args)))
    assert (operators["aten::relu"]["backward_ns"], operators["aten::relu_"]["backward_ns"]) == (70, 0)


def test_shapes_divide_the_calls_of_an_operator_for_programs():
    view = trace(
        host_ops=[(0, 30, "aten::mm"), (40, 10, "aten::mm"), (60, 5, "aten::mm")],
        op_args=[(i, "Input Dims", {"text": shape}) for i, shape in enumerate(("[[2,3],[3,4]]", "[[8,8],[8,8]]"))],
        run=PYTORCH,
    )
    grids = [block for block in section(view).blocks if isinstance(block, Grid)]
    by_shape = [(row[1], row[2]) for row in grids[1].rows]
    assert by_shape == [("[[2,3],[3,4]]", 1), ("[[8,8],[8,8]]", 1), (None, 1)]
    assert grids[1].audience == "machine"


def test_figures_per_step_leave_out_what_is_not_in_a_steady_step():
    view = trace(
        host_ops=[(10 + 100 * i, 50, "aten::mm") for i in range(4)] + [(900, 20, "aten::mm")],
        steps=[(100 * i, 100, i) for i in range(4)],
        span_ns=1000,
        run=PYTORCH,
    )
    matmul = rows(view)["aten::mm"]
    assert (matmul["calls"], matmul["calls_per_step"], matmul["host_self_per_step_ns"]) == (5, 1.0, 50.0)


def test_a_capture_of_the_host_only_shows_no_columns_of_devices():
    names = shown(trace(host_ops=[(0, 30, "aten::mm")], run=PYTORCH))
    assert names == {"name", "calls", "host_self_ns", "host_ns"}
    assert "device_self_ns" in shown(trace(**linear()))


def test_operators_and_framework_ops_never_show_the_same_trace_twice():
    ops = [(0, 30, "aten::mm")]
    torch, tensorflow = trace(host_ops=ops, run=PYTORCH), trace(host_ops=ops, run={"framework": "TensorFlow 2.15.0"})
    xplane = trace(host_ops=ops, run={"format": "xplane"})
    assert isinstance(FrameworkOpsAnalysis().run(torch), Skipped)
    assert isinstance(OperatorsAnalysis().run(tensorflow), Skipped)
    assert isinstance(OperatorsAnalysis().run(xplane), Skipped)
    assert facts(torch)["calls"] == 1


def test_a_trace_without_operators_says_so():
    outcome = OperatorsAnalysis().run(trace(host_ops=[(0, 5, "x", "runtime")], run=PYTORCH))
    assert outcome == Skipped("operators", "the trace names no operators")


@pytest.mark.parametrize("text", ["aten::_convolution", "aten::addmm", "c10d::allreduce_"])
def test_the_name_of_a_pytorch_operator_is_its_type(text):
    assert parsed_ops(pl.Series([text])).row(0) == (text, text, text)


def test_pytorchs_matrix_operators_in_32_bit_kernels_are_found_by_the_operator():
    view = trace(
        kernels=[(0, 900, "mystery_kernel_f32_8x8", {"op": "aten::convolution_backward"}), (900, 100, "k")],
        devices=[(0, "V100", {"compute_capability": "7.0"})],
        run=PYTORCH,
    )
    result = PrecisionAnalysis().run(view)
    assert result.by_type.select("type", "total_ns").rows() == [("aten::convolution_backward", 900)]


def test_what_an_operator_known_by_name_only_takes_per_step_is_not_known():
    view = trace(**linear(cuda_api=[], kernels=[(200, 500, "k", {"op": "aten::mm"})], steps=[(0, 1000, 0)]))
    matmul = rows(view)["aten::mm"]
    assert (matmul["device_self_ns"], matmul["device_self_per_step_ns"], matmul["calls_per_step"]) == (500, None, None)


def test_a_range_on_whose_behalf_work_ran_is_no_operator():
    kernels = [(200, 400, "k", {"op": "my range"}), (700, 100, "k", {"op": "Optimizer.step#SGD.step"})]
    kernels += [(800, 100, "k", {"op": "aten::mm"})]
    host = [(0, 100, "aten::linear"), (150, 20, "my range", "annotation"), (190, 20, "Optimizer.step#SGD.step")]
    view = trace(**linear(host_ops=host, cuda_api=[], kernels=kernels))
    assert sorted(rows(view)) == ["aten::linear", "aten::mm"]
    assert facts(view)["attributed_share"] == pytest.approx(100 / 600)
