"""Division of time that no event explains, by samples of the stack."""

import polars as pl
import pytest

from tests.analyses.builders import trace
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.causes.sampling import find_ticks, find_working_time
from traceviz.analyses.derived.view import TraceView

LOAD = "train.py:90 main > train.py:41 load"
SAVE = "train.py:90 main > train.py:88 save_checkpoint > os.fsync"
MM = "train.py:90 main > model.py:7 forward > torch/nn/modules/linear.py:114 forward"


def causes(view: TraceView) -> list[tuple[object, ...]]:
    """Return kind, cause, line and time, the largest first."""
    return host_causes(view).select("kind", "cause", "location", "time_ns").rows()


def test_samples_divide_what_is_unexplained_and_it_still_adds_up() -> None:
    """
    device    ##                                                        ##
    samples     |------- load: 90 ------|------- fsync: 110 --------|
    """
    view = trace(kernels=[(0, 10, "gemm"), (210, 10, "gemm")], **sampled((10, 90, LOAD), (100, 110, SAVE)), cuda_api=[])
    assert causes(view) == [
        ("saving", "os.fsync", "train.py:88 save_checkpoint", 110),
        ("python", "train.py:41 load", "train.py:41 load", 90),
    ]


def test_a_wait_is_named_by_the_function_that_waits_and_placed_in_the_line_of_the_program() -> None:
    get = "serve.py:12 main > queue.py:154 get"
    view = trace(kernels=[(0, 10, "gemm"), (210, 10, "gemm")], **sampled((10, 200, get)), cuda_api=[])
    assert causes(view) == [("lock", "queue.py:154 get", "serve.py:12 main", 200)]


def test_samples_that_were_taken_in_operators_say_nothing_of_the_time_between_them() -> None:
    """
    operator     |--- 60 ---|       |--- 60 ---|
    samples   . . . . . . . . . . . . . . . . . . .        all but those in the operators are of load
    """
    view = trace(
        host_ops=[(20, 60, "aten::mm"), (120, 60, "aten::mm")],
        **sampled((0, 20, LOAD), (20, 60, MM), (80, 40, LOAD), (120, 60, MM), (180, 20, LOAD), (200, 100, LOAD)),
        span_ns=300,
    )
    assert causes(view) == [
        ("python", "train.py:41 load", "train.py:41 load", 20 + 40 + 20 + 100),
        ("operator", "aten::mm", "model.py:7 forward", 120),
    ]


def test_a_range_is_less_precise_than_a_sample_and_stays_as_the_place_around_it() -> None:
    view = trace(kernels=[(0, 10, "gemm"), (210, 10, "gemm")], nvtx=[(10, 200, "epoch")], **sampled((10, 200, LOAD)))
    (row,) = host_causes(view).to_dicts()
    assert (row["kind"], row["cause"], row["range"], row["time_ns"]) == ("python", "train.py:41 load", "epoch", 200)


def test_the_wait_for_input_stays_input_and_gets_the_line() -> None:
    decode = "train.py:90 main > torch/utils/data/dataloader.py:733 __next__ > data.py:41 decode_jpeg"
    view = trace(
        kernels=[(0, 10, "gemm"), (210, 10, "gemm")],
        nvtx=[(10, 200, "data loading")],
        **sampled((10, 150, decode), (160, 50, LOAD)),
    )
    assert causes(view) == [
        ("input", "data loading", "data.py:41 decode_jpeg", 150),
        ("input", "data loading", "train.py:41 load", 50),
    ]
    assert host_causes(view)["calls"].to_list() == [1, 0]


def test_fewer_than_10_samples_explain_nothing() -> None:
    for samples, kind in ((9, "unexplained"), (10, "python")):
        view = trace(kernels=[(0, 10, "gemm"), (210, 10, "gemm")], **sampled((10, 200, LOAD, {"samples": samples})))
        assert host_causes(view).select("kind", "time_ns").rows() == [(kind, 200)]


@pytest.mark.parametrize(
    ("line", "cause"), [("serve.py:12 main", "engine/core.py:160 schedule"), ("serve.py:30 count", "serve.py:12 main")]
)
def test_below_a_line_that_encloses_all_samples_the_function_of_the_library_is_the_cause(line: str, cause: str) -> None:
    """Of 220 ns between kernels, 20 ns (9 %) are in the same line of the program as the others, or in another one."""
    samples = sampled((10, 200, "serve.py:12 main > engine/core.py:160 schedule"), (210, 20, line))
    view = trace(kernels=[(0, 10, "gemm"), (230, 10, "gemm")], **samples, cuda_api=[])
    assert causes(view)[0] == ("python", cause, "serve.py:12 main", 200)


def test_samples_of_another_thread_say_nothing_of_the_main_one() -> None:
    view = trace(
        kernels=[(0, 10, "gemm"), (210, 10, "gemm")],
        threads=[(0, 0, "MainThread"), (1, 0, "logger")],
        **sampled((10, 200, LOAD, {"thread_id": 1}), (10, 200, "train.py:90 main")),
    )
    assert [row[1] for row in causes(view)] == ["train.py:90 main"]


def test_a_row_of_several_samples_is_one_moment_for_each() -> None:
    view = trace(**sampled((0, 30, LOAD), (30, 10, "train.py:5 throttle > time.sleep")))
    rows = find_ticks(view, 0)
    assert rows.select("begin_ns", "moment_ns", "did", "what").rows() == [
        (0, 9, "python", "train.py:41 load"),
        (10, 19, "python", "train.py:41 load"),
        (20, 29, "python", "train.py:41 load"),
        (30, 39, "sleep", "time.sleep"),
    ]
    assert rows["line"].unique().sort().to_list() == ["train.py:41 load", "train.py:5 throttle"]
    assert rows.schema["moment_ns"] == pl.Int64


DOT = "train.py:90 main > train.py:12 predict > numpy.dot"
ACQUIRE = "train.py:90 main > train.py:60 add_metric > threading.py:324 wait > lock.acquire"


def waits(stack: str, *used: tuple[int, str, float], call: str = "futex") -> dict[str, int]:
    """Return the time by kind of a program that waits in a system call for 200 ns, with samples of ``stack``."""
    view = trace(
        nvtx=[(0, 200, "epoch")], os_calls=[(0, 200, call)], samples=list(used), **sampled((0, 200, stack)), span_ns=200
    )
    return dict(host_causes(view).group_by("kind").agg(pl.col("time_ns").sum()).iter_rows())


CPU, QUEUED = "program CPU", "program waits for a core"


def test_a_library_that_waits_for_its_own_threads_computes_while_the_program_uses_a_core() -> None:
    assert waits(DOT, (0, CPU, 0.0), (200, CPU, 180.0)) == {"library": 200}
    assert waits(DOT, (0, CPU, 0.0), (200, CPU, 49.0)) == {"os_call": 200}
    assert waits(DOT, (0, CPU, 0.0), (200, CPU, 50.0)) == {"library": 200}
    assert waits(DOT) == {"library": 200}  # nothing contradicts the stack


def test_on_a_busy_machine_a_program_that_waits_for_a_core_works() -> None:
    assert waits(DOT, (0, CPU, 0.0), (0, QUEUED, 0.0), (200, CPU, 20.0), (200, QUEUED, 90.0)) == {"library": 200}
    assert waits(DOT, (0, CPU, 0.0), (0, QUEUED, 0.0), (200, CPU, 2.0), (200, QUEUED, 1.0)) == {"os_call": 200}


def test_the_stack_says_for_what_a_system_call_waits() -> None:
    assert waits(ACQUIRE, (0, CPU, 0.0), (200, CPU, 1.0)) == {"lock": 200}
    assert waits(SAVE, call="fsync") == {"saving": 200}
    assert waits(LOAD) == {"os_call": 200}  # a line of Python is less specific than the call


def test_a_library_that_reads_does_not_compute() -> None:
    assert waits(DOT, (0, CPU, 0.0), (200, CPU, 180.0), call="read") == {"os_call": 200}


def test_a_wait_without_a_sample_has_those_of_the_same_call_in_other_steps() -> None:
    """Of 40 steps with a short wait each, samples fall into every second one."""
    steps = [(20 * n, 20, f"step {n}") for n in range(40)]
    rows = [(20 * n, 20, DOT if n % 2 else "train.py:90 main", {"samples": n % 2}) for n in range(40)]
    view = trace(nvtx=steps, os_calls=[(20 * n + 5, 15, "futex") for n in range(40)], **sampled(*rows), span_ns=800)
    found = dict(host_causes(view).group_by("kind").agg(pl.col("time_ns").sum()).iter_rows())
    assert found == {"library": 40 * 15, "unexplained": 40 * 5}


WORKER = {"thread_id": 1}
CONVOLVE = "threading.py:1002 run > train.py:12 work > torch.conv2d"


def with_worker(does: str, *calls: tuple[int, int, str]) -> list[tuple[object, ...]]:
    """Return the causes for a main thread that waits for a lock for 200 ns, while a worker works for 150 ns."""
    rows = sampled((0, 200, ACQUIRE), (0, 150, does, WORKER), (150, 50, "threading.py:327 wait > lock.acquire", WORKER))
    threads = [(0, 0, "MainThread"), (1, 0, "worker")]
    return causes(trace(threads=threads, nvtx=[(0, 200, "epoch")], span_ns=200, os_calls=list(calls), **rows))


@pytest.mark.parametrize("calls", [(), ((0, 200, "futex"),)])
def test_a_wait_for_a_thread_that_computes_is_the_work_of_that_thread(calls: tuple[tuple[int, int, str], ...]) -> None:
    assert with_worker(CONVOLVE, *calls) == [
        ("library", "torch.conv2d", "train.py:12 work", 150),
        ("lock", "lock.acquire", "train.py:60 add_metric", 50),
    ]


@pytest.mark.parametrize("does", ["sleep", "read", "loop"])
def test_a_wait_for_a_thread_that_does_not_compute_stays_a_wait(does: str) -> None:
    """The finding about locks reports the work of the other thread; it names both."""
    stacks = {"sleep": " > time.sleep", "read": " > f.read", "loop": ""}
    busy = f"threading.py:1002 run > train.py:18 publish{stacks[does]}"
    assert with_worker(busy, (0, 200, "futex")) == [("lock", "lock.acquire", "train.py:60 add_metric", 200)]


def bounds(**given: list[tuple[object, ...]]) -> list[tuple[int, int]] | None:
    found = find_working_time(trace(nvtx=[(0, 100, "run")], **given))
    return None if found is None else list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))


def test_a_sample_stands_for_the_time_since_the_one_before_it() -> None:
    samples = [
        (0, CPU, 200.0),
        (10, CPU, 100.0),
        (20, CPU, 3.0),
        (30, CPU, 50.0),
        (40, CPU, 49.9),
    ]
    assert bounds(samples=samples) == [(0, 10), (20, 30)]


def test_waiting_for_a_core_counts_although_it_is_sampled_at_other_times() -> None:
    samples = [
        (0, CPU, 0.0),
        (10, CPU, 10.0),
        (20, CPU, 10.0),
        (30, CPU, 10.0),
        (15, QUEUED, 0.0),
        (35, QUEUED, 80.0),
    ]
    assert bounds(samples=sorted(samples)) == [(10, 30)]


def test_without_samples_it_is_not_known() -> None:
    assert bounds() is None
    assert bounds(samples=[(0, CPU, 100.0)]) is None
    assert bounds(samples=[(0, "machine CPU", 100.0), (10, "machine CPU", 100.0)]) is None
