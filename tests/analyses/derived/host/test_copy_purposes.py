"""Purposes of copies between host and device."""

from __future__ import annotations

import polars as pl
import pytest

from tests.analyses.builders import Literal, trace
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.copy_purposes import BATCHES, FEW, PARAMETERS, copy_purposes
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.options import AnalysisOptions

MB = 1 << 20
STEP = 1000
STEPS = [(n * STEP, STEP, f"step {n}") for n in range(4)]
PYTORCH = {"framework": "PyTorch 2.4"}


def purposes(view: TraceView) -> list[tuple[str, int]]:
    """Return purposes of the copies by start, with the number of copies in a row that have it."""
    frame = copy_purposes(view).sort("start_ns").with_columns(pl.col("purpose").rle_id().alias("run"))
    rows = frame.group_by("run", maintain_order=True).agg(pl.col("purpose").first(), pl.len())
    return [(str(purpose), number) for _, purpose, number in rows.iter_rows()]


def every_step(*work: tuple[int, int, str, int], stream: int = 7) -> dict[str, list[Literal]]:
    """Return four steps of ten kernels, each with the copies ``(start, duration, kind, bytes)``, without calls."""
    copies = [
        (n * STEP + start, duration, kind, "pinned", "device", size, {"stream": stream})
        for n in range(4)
        for start, duration, kind, size in work
    ]
    kernels = [(n * STEP + 100 + 50 * k, 40, "gemm") for n in range(4) for k in range(10)]
    return {"memcpy": copies, "kernels": kernels, "nvtx": list(STEPS)}


@pytest.mark.parametrize(
    ("copy", "stream", "purpose"),
    [
        ((50, 40, "h2d", 12 * MB), 7, "input"),
        ((700, 40, "h2d", 12 * MB), 7, "input"),
        ((340, 5, "h2d", 12 * MB), 7, "unknown"),
        ((340, 5, "h2d", 12 * MB), 20, "input"),
    ],
    ids=["before the kernels", "after them, of the next step", "amid them", "amid them, on a stream of its own"],
)
def test_a_copy_in_each_step_is_input_by_its_place(copy: tuple[int, int, str, int], stream: int, purpose: str) -> None:
    """
    kernels  |    ##########|    ##########|
    copies   | cc           | cc           |
    """
    assert purposes(trace(**every_step(copy, stream=stream))) == [(purpose, 4)]


def test_a_copy_that_is_not_in_most_steps_is_unknown() -> None:
    tables = every_step((50, 40, "h2d", 12 * MB))
    tables["memcpy"] = tables["memcpy"][:1]
    assert purposes(trace(**tables)) == [("unknown", 1)]


def test_copies_of_one_size_are_all_input_where_the_first_is_at_the_begin_of_its_step() -> None:
    """Gradients accumulate over two batches a step; the copy of a small mask in between has another size."""
    view = trace(**every_step((50, 40, "h2d", 12 * MB), (340, 5, "h2d", 12 * MB), (395, 5, "h2d", 2 * MB)))
    assert purposes(view) == [("input", 2), ("unknown", 1)] * 4


def test_where_ranges_name_the_batches_of_most_steps_no_others_are_looked_for() -> None:
    """The copy of a first layer comes after that of the batch, before any kernel: by its place alone it is input."""
    tables = every_step((10, 30, "h2d", 12 * MB), (60, 30, "h2d", 50 * MB))
    assert purposes(trace(**tables)) == [("input", 8)]
    named = [(n * STEP, 50, "## copy_batch_to_gpu ##", "annotation") for n in range(4)]
    assert purposes(trace(**tables, host_ops=named)) == [("input", 1), ("unknown", 1)] * 4
    assert purposes(trace(**tables, host_ops=named[:1])) == [("input", 8)]


@pytest.mark.parametrize(("number", "purpose"), [(FEW, "input"), (FEW + 1, "unknown")])
def test_a_batch_is_few_copies_a_step(number: int, purpose: str) -> None:
    view = trace(**every_step(*((n * 10, 9, "h2d", MB + n) for n in range(number))))
    assert purposes(view) == [(purpose, 4 * number)]


def test_the_order_of_calls_decides_where_the_device_is_behind_the_host() -> None:
    """
    host     |copy-launches|copy-launches|
    device   |    copy-kernels--------|copy-kernels------
    """
    calls: list[Literal] = []
    copies: list[Literal] = []
    kernels: list[Literal] = []
    for n in range(4):
        begin, late = n * STEP, n * STEP + 600
        calls.append((begin + 10, 5, "cudaMemcpyAsync", {"correlation_id": 100 * n}))
        copies.append((late, 40, "h2d", "pinned", "device", 12 * MB, {"correlation_id": 100 * n}))
        for k in range(10):
            calls.append((begin + 100 + 10 * k, 5, "cudaLaunchKernel", {"correlation_id": 100 * n + k + 1}))
            kernels.append((late + 50 + 50 * k, 40, "gemm", {"correlation_id": 100 * n + k + 1}))
    view = trace(nvtx=list(STEPS), cuda_api=calls, memcpy=copies, kernels=kernels)
    assert purposes(view) == [("input", 4)]


def offload(name: str, **further: list[Literal]) -> TraceView:
    """Return two copies of a layer in a range ``name``, an equal one without a call, and a small one elsewhere."""
    layer = ("pinned", "device", 160 * MB)
    return trace(
        kernels=[(900, 10, "gemm")],
        memcpy=[
            (0, 80, "h2d", *layer),
            (110, 80, "h2d", *layer, {"correlation_id": 1}),
            (310, 80, "h2d", *layer, {"correlation_id": 2}),
            (600, 8, "h2d", "pinned", "device", 4096, {"correlation_id": 3}),
        ],
        cuda_api=[
            (105, 5, "cudaMemcpyAsync", {"correlation_id": 1}),
            (305, 5, "cudaMemcpyAsync", {"correlation_id": 2}),
            (595, 5, "cudaMemcpyAsync", {"correlation_id": 3}),
        ],
        nvtx=[(100, 20, f"{name} (blocks.1), op_id = 12"), (300, 20, f"{name} (blocks.2), op_id = 13")],
        **further,
    )


def test_copies_in_ranges_of_sharded_modules_and_those_of_their_size_are_of_parameters() -> None:
    view = offload("FSDP::pre_forward")
    assert purposes(view) == [("parameters", 3), ("unknown", 1)]
    assert copy_purposes(view).sort("start_ns")["place"].to_list() == [None, *["FSDP::pre_forward"] * 2, None]
    sets = host_classes(view)[0].sets
    assert (sets["parameter_transfer"].total, sets["copy_h2d"].total) == (240, 8)


def test_the_innermost_range_says_what_a_copy_is_for() -> None:
    """FSDP moves the inputs of the model within the range in which it gathers the parameters of the root."""
    view = trace(
        kernels=[(900, 10, "gemm")],
        memcpy=[
            (40, 20, "h2d", "pinned", "device", 2 * MB, {"correlation_id": 1}),
            (90, 40, "h2d", "pinned", "device", 64 * MB, {"correlation_id": 2}),
        ],
        cuda_api=[
            (30, 5, "cudaMemcpyAsync", {"correlation_id": 1}),
            (80, 5, "cudaMemcpyAsync", {"correlation_id": 2}),
        ],
        host_ops=[
            (0, 100, "FSDP::root_pre_forward", "annotation"),
            (20, 30, "FSDP::inputs_to_device", "annotation"),
        ],
    )
    assert purposes(view) == [("input", 1), ("parameters", 1)]


def test_copies_called_while_a_batch_is_taken_or_next_after_it_are_input_without_any_steps() -> None:
    assert purposes(offload("data loading")) == [("unknown", 1), ("input", 3)]


def test_a_copy_after_the_first_launch_since_a_batch_was_taken_is_unknown() -> None:
    launched = {"correlation_id": 9}
    calls = [(400, 5, "cudaLaunchKernel", launched), (500, 5, "cudaMemcpyAsync", {"correlation_id": 1})]
    view = trace(
        nvtx=[(0, 300, "data loading")],
        cuda_api=calls,
        kernels=[(410, 80, "gemm", launched)],
        memcpy=[(510, 80, "h2d", "pinned", "device", 12 * MB, {"correlation_id": 1})],
    )
    assert purposes(view) == [("unknown", 1)]


def test_the_users_pattern_names_the_input() -> None:
    tables = offload("ingest").tables
    assert purposes(TraceView(tables)) == [("unknown", 4)]
    view = TraceView(tables, AnalysisOptions(input_range="^ingest"))
    assert purposes(view) == [("unknown", 1), ("input", 3)]


def round_trips(run: dict[str, str], number: int) -> TraceView:
    """Return steps in which equally many tensors of different sizes go to the host and come back."""
    away = [(10 * n, 5, "d2h", 16 * MB + n) for n in range(number)]
    back = [(350 + 10 * n, 5, "h2d", 16 * MB + n) for n in range(number)]
    return trace(run=run, **every_step(*away, *back))


def test_many_tensors_that_a_framework_puts_away_and_fetches_in_each_step_are_offloaded() -> None:
    assert purposes(round_trips(PYTORCH, FEW + 1)) == [("parameters", 4 * 2 * (FEW + 1))]


@pytest.mark.parametrize(
    ("number", "size", "purpose"),
    [
        (FEW + 1, 16 * (FEW + 1), "parameters"),
        (FEW + 1, 8 * (FEW + 1), "parameters"),
        (FEW + 1, 7 * (FEW + 1), "input"),  # less than half of what goes
        (FEW + 1, 33 * (FEW + 1), "input"),  # more than twice of it
        (FEW, 16 * FEW, "input"),
    ],
)
def test_what_the_optimizer_on_the_host_sends_at_once_for_many_gradients_is_of_parameters(
    number: int, size: int, purpose: str
) -> None:
    """One copy at the end of each step, which else looks like the next batch."""
    gradients = [(300 + 10 * n, 5, "d2h", 16 * MB) for n in range(number)]
    view = trace(run=PYTORCH, **every_step(*gradients, (700, 40, "h2d", size * MB)))
    back = copy_purposes(view).filter(pl.col("kind") == "h2d")
    assert back["purpose"].to_list() == [purpose] * 4


def test_few_tensors_that_go_out_and_back_may_be_batches_and_results() -> None:
    assert ("parameters", 8) not in purposes(round_trips(PYTORCH, 1))


def test_a_program_without_a_framework_has_no_parameters() -> None:
    assert {purpose for purpose, _ in purposes(round_trips({}, FEW + 1))} == {"unknown"}


NAMES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    PARAMETERS: (
        (
            *("FSDP::pre_forward (blocks.7), op_id = 3", "FSDP::pre_backward", "FSDP::backward_prefetch for layers.3"),
            *("FullyShardedDataParallel._pre_forward", "torch/distributed/fsdp/_runtime_utils.py(291): _unshard"),
            *("DeepSpeedZeRoOffload._prefetch", "fetch_sub_module", "zero_offload", "offload", "model_cpu_offload"),
            *("accelerate/hooks.py(328): pre_forward", "diffusers/hooks/group_offloading.py(120): onload_"),
            "optimizer state swap_in",
        ),
        (
            *("forward", "optimizer.step", "zero_grad", "json.loads", "jsonload_model", "shard_dataset", "prefetch"),
            *("omp target offload 3", "FSDP::inputs_to_device", "nccl:_all_gather_base"),
        ),
    ),
    BATCHES: (
        (
            *("## copy_batch_to_gpu ##", "Copy to device", "H2D", "[pl][profile]batch_to_device", "to_device 3"),
            "FSDP::inputs_to_device, op_id = 4",
        ),
        ("copy", "aten::to", "model.to_device_layers", "send"),
    ),
}


@pytest.mark.parametrize("pattern", NAMES, ids=["parameters", "batches"])
def test_names_of_ranges_that_move_parameters_or_batches_and_of_others(pattern: str) -> None:
    moving, others = NAMES[pattern]
    names = pl.Series([*moving, *others])
    assert names.filter(names.str.contains(pattern)).to_list() == list(moving)
