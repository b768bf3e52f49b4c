"""Causes of the time in which no device works, nanosecond by nanosecond."""

import polars as pl
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.view import TraceView

OTHER = {"thread_id": 1}


def causes(view: TraceView) -> dict[tuple[str, str | None], int]:
    """Return the time by kind and cause."""
    rows = host_causes(view).group_by("kind", "cause").agg(pl.col("time_ns").sum())
    return {(kind, cause): time for kind, cause, time in rows.iter_rows()}


def test_the_innermost_event_of_the_leading_thread_explains_the_time() -> None:
    """
    device   ##                                      ##
    range      |-------------epoch------------------|
    python        |--load--|      |--save---------|
    system                           |--fsync--|
    """
    view = trace(
        kernels=[(0, 10, "gemm"), (200, 10, "gemm")],
        nvtx=[(10, 190, "epoch")],
        host_ops=[(30, 40, "train.py(41): load", "python"), (100, 80, "train.py(88): save", "python")],
        os_calls=[(110, 50, "fsync")],
    )
    assert causes(view) == {
        ("range", "epoch"): 20 + 30 + 20,
        ("python", "train.py:41 load"): 40,
        ("python", "train.py:88 save"): 10 + 20,
        ("os_call", "fsync"): 50,
    }
    places = {row["cause"]: (row["range"], row["location"]) for row in host_causes(view).to_dicts()}
    assert places["fsync"] == ("epoch", "train.py:88 save")
    assert places["epoch"] == ("epoch", None)


def test_what_no_event_covers_is_unexplained() -> None:
    view = trace(kernels=[(0, 10, "gemm"), (100, 10, "gemm")], nvtx=[(40, 20, "log")])
    assert causes(view) == {("unexplained", None): 30 + 40, ("range", "log"): 20}


def test_the_call_of_the_device_explains_time_and_not_the_system_call_in_it() -> None:
    view = trace(
        kernels=[(0, 10, "gemm"), (100, 10, "gemm")],
        cuda_api=[(10, 90, "cudaMalloc"), (20, 60, "cuMemAlloc_v2")],
        os_calls=[(30, 40, "ioctl")],
    )
    assert causes(view) == {("allocation", "cudaMalloc"): 90}


def test_a_call_of_another_thread_explains_its_own_class_only() -> None:
    """The allocation of the other thread explains what is allocation; the leading thread computes before it."""
    view = trace(
        kernels=[(0, 10, "gemm"), (100, 10, "gemm")],
        cuda_api=[(60, 40, "cudaMalloc", OTHER)],
        host_ops=[(10, 90, "train.py(7): step", "python")],
        threads=[(0, 0, "python"), (1, 0, "worker")],
    )
    assert causes(view) == {("python", "train.py:7 step"): 50, ("allocation", "cudaMalloc"): 40}


def test_an_operator_of_another_thread_explains_the_wait_of_python_for_it() -> None:
    """PyTorch runs the backward pass on a thread of its own, while Python waits in ``backward``."""
    view = trace(
        kernels=[(0, 10, "gemm"), (100, 10, "gemm")],
        host_ops=[
            (10, 90, "train.py(9): backward", "python"),
            (20, 30, "MmBackward0", "op", OTHER),
            (25, 10, "aten::mm", "op", OTHER),
        ],
        threads=[(0, 0, "python"), (1, 0, "autograd")],
    )
    assert causes(view) == {
        ("python", "train.py:9 backward"): 10 + 50,
        ("operator", "MmBackward0"): 20,
        ("operator", "aten::mm"): 10,
    }


def test_an_operator_of_the_leading_thread_keeps_its_time_from_those_of_others() -> None:
    view = trace(
        kernels=[(0, 10, "gemm"), (100, 10, "gemm")],
        host_ops=[(10, 90, "aten::sort", "op"), (20, 30, "aten::mm", "op", OTHER)],
        threads=[(0, 0, "python"), (1, 0, "other")],
    )
    assert causes(view) == {("operator", "aten::sort"): 90}


THREADS = [(0, 0, "python"), (1, 0, "executor")]


@pytest.mark.parametrize("wait", ["futex", "poll", "epoll_wait", "sem_wait", "pthread_cond_timedwait", "pthread_join"])
def test_a_wait_for_a_thread_is_explained_by_the_operators_that_other_threads_run(wait: str) -> None:
    """
    main    |------------- futex: 300 -------------|
    thread      |-- MatMul: 100 --|  |-Relu: 60-|
    """
    view = trace(
        os_calls=[(0, 300, wait)],
        host_ops=[(20, 100, "MatMul:MatMul", "op", OTHER), (150, 60, "Relu:Relu", "op", OTHER)],
        threads=THREADS,
        nvtx=[(0, 300, "step")],
        span_ns=300,
    )
    assert causes(view) == {
        ("operator", "MatMul:MatMul"): 100,
        ("operator", "Relu:Relu"): 60,
        ("os_call", wait): 300 - 160,
    }
    classes = host_causes(view).group_by("class").agg(pl.col("time_ns").sum()).sort("class").rows()
    assert classes == [("host_blocked", 140), ("host_compute", 160)]


@pytest.mark.parametrize(
    ("call", "dur", "program", "kind"),
    [
        ("pthread_cond_timedwait", 6_000_000, "python3.11", "gil"),
        ("pthread_cond_timedwait", 6_000_001, "python3.11", "os_call"),
        ("pthread_cond_timedwait", 5_000_000, "solver", "os_call"),
        ("pthread_cond_wait", 5_000_000, "/usr/bin/python", "os_call"),
        ("pthread_cond_timedwait", 5_000_000, "/usr/bin/python", "gil"),
    ],
)
def test_short_timed_waits_of_the_leading_thread_of_python_are_for_the_interpreter(call, dur, program, kind):
    view = trace(processes=[(0, program)], os_calls=[(0, dur, call)], nvtx=[(0, dur, "step")], span_ns=dur)
    assert causes(view) == {(kind, call): dur}
    assert host_causes(view)["part"].to_list() == [kind]


@pytest.mark.parametrize("call", ["nanosleep", "clock_nanosleep", "fsync", "read", "open64"])
def test_sleep_and_input_and_output_are_no_waits_for_what_other_threads_do(call: str) -> None:
    view = trace(
        os_calls=[(0, 300, call)],
        host_ops=[(20, 100, "MatMul:MatMul", "op", OTHER)],
        threads=THREADS,
        nvtx=[(0, 300, "step")],
        span_ns=300,
    )
    assert causes(view) == {("os_call", call): 300}


@pytest.mark.parametrize(
    ("name", "category", "kind"),
    [
        ("aten::convolution_backward", "op", "operator"),
        ("KernelAndDeviceFunc::Run", "runtime", "runtime"),
        ("tf.function-graph_building", "compile", "compilation"),
        ("threading.py(324): wait", "python", "python_wait"),
    ],
)
def test_a_system_call_in_a_call_of_the_framework_is_how_that_works(name: str, category: str, kind: str) -> None:
    """OpenMP's threads meet at a barrier in an operator, and a runtime waits for its executor."""
    view = trace(
        host_ops=[(0, 200, name, category)],
        os_calls=[(10, 100, "futex"), (20, 50, "sched_yield"), (120, 30, "munmap")],
        span_ns=200,
    )
    assert {kind for kind, _ in causes(view)} == {kind}
    assert sum(causes(view).values()) == 200


def test_a_system_call_in_a_function_of_the_program_says_more_than_the_function() -> None:
    """No framework works there: the program waits for a lock that nothing explains."""
    view = trace(host_ops=[(0, 200, "train.py(41): add_metric", "python")], os_calls=[(10, 150, "futex")], span_ns=200)
    assert causes(view) == {("os_call", "futex"): 150, ("python", "train.py:41 add_metric"): 50}


def test_a_wait_in_a_synchronising_call_stays_that_call_whatever_other_threads_run() -> None:
    view = trace(
        kernels=[(0, 10, "gemm"), (200, 10, "gemm")],
        cuda_api=[(10, 190, "cudaStreamSynchronize")],
        os_calls=[(20, 150, "poll")],
        host_ops=[(20, 100, "aten::mm", "op", OTHER)],
        threads=THREADS,
    )
    assert causes(view) == {("synchronisation", "cudaStreamSynchronize"): 190}


def test_a_mark_of_a_step_explains_nothing() -> None:
    steps = [(n * 100, 100, f"step {n}") for n in range(5)]
    view = trace(
        kernels=[(n * 100, 40, "gemm") for n in range(6)],
        nvtx=[*steps, *((n * 100 + 50, 20, "log") for n in range(5))],
    )
    assert causes(view) == {("unexplained", None): 5 * (10 + 30), ("range", "log"): 5 * 20}


def test_work_that_was_launched_and_has_not_begun_is_a_queue() -> None:
    view = trace(
        kernels=[(0, 10, "gemm"), (100, 10, "gemm", {"correlation_id": 2})],
        cuda_api=[(20, 30, "cudaLaunchKernel", {"correlation_id": 2})],
        host_ops=[(0, 200, "aten::linear", "op")],
    )
    assert causes(view) == {
        ("operator", "aten::linear"): 10,
        ("launch", "cudaLaunchKernel"): 30,
        ("launch_queue", None): 50,
    }


def test_a_range_that_crosses_another_is_given_no_time_at_which_it_does_not_run() -> None:
    view = trace(
        kernels=[(0, 10, "gemm"), (100, 10, "gemm")],
        host_ops=[(10, 50, "a", "annotation"), (40, 40, "b", "annotation")],
    )
    assert sum(causes(view).values()) == 90
    assert causes(view)["range", "b"] == 40


def test_places_name_operator_module_and_line_of_the_program() -> None:
    view = trace(
        kernels=[(0, 10, "gemm"), (100, 10, "gemm")],
        host_ops=[
            (5, 100, "train.py(12): main", "python"),
            (6, 98, "nn.Module: Linear_0", "python"),
            (7, 96, "torch/nn/modules/linear.py(124): forward", "python"),
            (8, 94, "aten::linear", "op"),
            (10, 90, "aten::addmm", "op"),
        ],
    )
    (row,) = host_causes(view).to_dicts()
    assert (row["cause"], row["time_ns"], row["calls"]) == ("aten::addmm", 90, 1)
    assert (row["operator"], row["module"], row["location"]) == ("aten::linear", "Linear_0", "train.py:12 main")


@pytest.mark.parametrize("seed", range(8))
def test_causes_add_up_to_their_class_exactly(seed: int) -> None:
    """Causes add up for any nesting or crossing on any number of threads."""
    import numpy as np

    random = np.random.default_rng(seed)
    names = ("a", "aten::mm", "data loading", "train.py(1): f")
    categories = ("annotation", "op", "annotation", "python")
    which = random.integers(0, 4, 40)
    ops = [
        (int(start), int(length), names[n], categories[n], {"thread_id": int(thread)})
        for start, length, n, thread in zip(
            random.integers(0, 900, 40), random.integers(0, 200, 40), which, random.integers(0, 3, 40), strict=True
        )
    ]
    api = ("cudaMalloc", "cudaLaunchKernel", "cudaStreamSynchronize", "cudaFuncGetAttributes")
    calls = [(int(s), int(d), api[n % 4]) for n, (s, d) in enumerate(random.integers(0, 500, (12, 2)))]
    view = trace(
        kernels=[(0, 20, "gemm"), (1000, 20, "gemm"), *((int(s), 15, "add") for s in random.integers(0, 1000, 5))],
        host_ops=sorted(ops, key=lambda op: op[0]),
        cuda_api=sorted(calls),
        threads=[(n, 0, f"thread {n}") for n in range(3)],
    )
    idle = judged_time(view, 0).subtract(view.rank_busy[0])
    found = dict(host_causes(view).group_by("class").agg(pl.col("time_ns").sum()).iter_rows())
    expected = {key: owned.intersect(idle).total for key, owned in host_classes(view)[0].sets.items()}
    assert found == {key: time for key, time in expected.items() if time}


def test_copies_that_wait_and_first_calls_are_told_by_what_they_did() -> None:
    """
    device   ##          ##            ##
    calls      |--copy->||launch, code|    the copy to pageable memory takes 20 µs to launch, and then waits
    """
    us = 1_000
    view = trace(
        kernels=[(0, us, "add"), (9_000 * us, us, "gemm", {"correlation_id": 2})],
        memcpy=[(900 * us, us, "d2h", "device", "pageable", 4, {"correlation_id": 1})],
        cuda_api=[
            (us, 900 * us, "cudaMemcpyAsync", {"correlation_id": 1}),
            (901 * us, 8_099 * us, "cudaLaunchKernel", {"correlation_id": 2}),
        ],
    )
    assert causes(view) == {
        ("blocking_copy", "cudaMemcpyAsync"): 899 * us,
        ("first_launch", "cudaLaunchKernel"): 8_099 * us,
    }
    of_class = host_causes(view).group_by("class").agg(pl.col("time_ns").sum()).sort("class")
    assert of_class.rows() == [
        ("compilation", 8_099 * us),
        ("kernel_launch", 20 * us),
        ("synchronisation", 879 * us),
    ]


def test_steps_outside_of_what_was_captured_have_no_causes() -> None:
    late = [(1_000 + 100 * n, 100, n, "Step") for n in range(4)]
    view = trace(host_ops=[(0, 50, "aten::add", "op")], steps=late, span_ns=100)
    assert host_causes(view).height == 0


def test_a_call_that_registers_memory_inside_mpi_explains_its_own_time() -> None:
    view = trace(
        kernels=[(0, 10, "gemm"), (800, 10, "gemm")],
        nvtx=[(100, 600, "MPI_Recv")],
        cuda_api=[(150, 400, "cuMemHostRegister_v2"), (600, 50, "cudaStreamSynchronize")],
    )
    found = causes(view)
    assert found["registration", "cuMemHostRegister_v2"] == 400
    assert found["host_collective", "MPI_Recv"] == 200


def test_a_range_that_was_inferred_to_mark_steps_is_work() -> None:
    """The range repeats once per step and takes 60 of its 100 ns."""
    parts = [(100 * n, 60, "find_centers") for n in range(12)]
    view = trace(nvtx=[*parts, *((100 * n + 60, 30, "post") for n in range(12))])
    found = causes(view)
    assert found["range", "find_centers"] >= 60 * 10
    assert found["range", "find_centers"] == 2 * found["range", "post"]
