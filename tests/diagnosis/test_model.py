"""Graphs, threads that launch, and managed memory, with timelines worked out by hand in microseconds."""

from dataclasses import replace

import pytest

from benchmarks.diagnosis.knobs import Knob
from benchmarks.diagnosis.record import Kind, Work
from benchmarks.diagnosis.training import train
from benchmarks.diagnosis.truth import run
from benchmarks.diagnosis.worlds import World

SMALL = World(0, steps=2, layers=1, operators=2, kernel_ns=100_000, operator_ns=10_000, workers=0, spread=0)


def in_microseconds(spans):
    return [(span.start / 1_000, span.end / 1_000) for span in spans]


def test_a_graph_is_one_launch_for_all_kernels_of_both_passes():
    record = train(replace(SMALL, graphs=True))
    first = [span for span in record.device if span.graph is not None and span.start < 830_000]

    assert in_microseconds(first) == [(204.8, 304.8), (305.6, 405.6), (406.4, 606.4), (607.2, 807.2)]
    assert [span.node for span in first] == [0, 1, 2, 3]
    launches = [span for span in record.spans if span.name == "cudaGraphLaunch"]
    assert {span.correlation for span in first} == {launches[0].correlation}
    assert in_microseconds(launches)[0] == (51, 63)
    assert len(launches) == 2
    # The optimizer is not part of it.
    assert sum(span.graph is None and span.work is Work.KERNEL for span in record.device) == 2 * 2


def test_reductions_of_gradients_are_nodes_of_the_graph():
    record = train(replace(SMALL, graphs=True, ranks=2, layers=2))
    reductions = [span for span in record.device if span.work is Work.COLLECTIVE and span.rank == 0]

    assert len(reductions) == 2 * 2
    assert {span.graph for span in reductions} == {1}


def test_a_long_record_has_the_first_step_without_a_graph_and_captures_it_in_the_second():
    record = train(replace(SMALL, graphs=True, steps=24))
    calls = [span.name for span in record.spans if span.kind is Kind.API]

    assert calls.count("cudaGraphLaunch") == 23
    assert calls.count("cudaGraphInstantiate") == calls.count("cudaStreamBeginCapture") == 1
    # Launches while it captures start no work.
    started = {span.correlation for span in record.device}
    idle = [span for span in record.spans if span.name == "cudaLaunchKernel" and span.correlation not in started]
    assert len(idle) == 2 * 2
    begin, end = (
        next(span for span in record.spans if span.name == f"cudaStream{part}Capture") for part in ("Begin", "End")
    )
    assert begin.end <= min(span.start for span in idle)
    assert max(span.end for span in idle) <= end.start


def test_another_thread_copies_batches_on_a_stream_of_its_own_and_the_next_kernel_waits():
    record = train(replace(SMALL, prefetches=True, steps=1))
    copy = next(span for span in record.device if span.work is Work.HOST_TO_DEVICE)
    call = next(
        span for span in record.spans if span.name == "cudaMemcpyAsync" and span.correlation == copy.correlation
    )

    assert (copy.stream, call.thread) == (14, 4)
    assert in_microseconds([copy, record.device[1]]) == [(54, 204), (204, 304)]
    assert len({span.thread for span in record.spans if span.name == "cudaLaunchKernel"}) == 2


def test_threads_that_sleep_change_nothing_else():
    plain, helped = train(replace(SMALL, steps=40)), train(replace(SMALL, steps=40, helpers=2))
    sleeps = [span for span in helped.spans if span.thread >= 30]

    assert helped.end == plain.end
    assert tuple(span for span in helped.spans if span.thread < 30) == plain.spans
    assert {span.name for span in sleeps} == {"pthread_cond_timedwait", "clock_nanosleep"}
    assert [facts.name for facts in helped.threads][-2:] == ["pt_nccl_watchdg", "tb_writer"]


def test_pages_move_one_by_one_to_the_host_and_back_while_the_next_kernel_runs():
    world = replace(SMALL, steps=1, operators=1, strengths={Knob.MANAGED_MEMORY: 1.0})
    record = train(world)
    to_host = [span for span in record.migrations if not span.to_device]
    to_device = [span for span in record.migrations if span.to_device]

    # The step takes 300 on the device. The host needs 210 for 10 blocks, from the launch of the copy on; the kernel
    # needs 90 for 4 more blocks.
    assert len(to_host) == 210 // 20 == 10
    assert len(to_device) == 90 // 20 == 4
    assert in_microseconds(to_host)[0] == (55.5, 66)
    assert to_host[-1].end == 255_000
    kernel = next(span for span in record.device if span.work is Work.KERNEL)
    assert in_microseconds([kernel]) == [(269, 269 + 100 + 90)]
    assert kernel.start < to_device[0].start < to_device[-1].end == kernel.end


def test_other_threads_that_run_longer_than_the_program_do_not_lengthen_its_record():
    world = World(5, steps=3, strengths={Knob.GIL: 0.5})
    record = run(world)

    assert record.end == max(span.end for span in record.spans if span.thread == 1)
    assert max(span.end for span in record.spans) == record.end


@pytest.mark.parametrize("strengths", [{}, {Knob.CHILD_PROCESSES: 0.5}])
def test_a_run_that_keeps_no_record_ends_at_the_same_time(strengths):
    world = World(6, steps=4, ranks=2, helpers=1, strengths=strengths)

    assert run(world, keeps=False).end == run(world).end
    assert run(world, keeps=False).spans == ()
