"""Collectives on the host: who waits in them, and what their time counts as."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.collectives import joint_collectives
from traceviz.analyses.device.idle_gaps import IdleGapsAnalysis
from traceviz.analyses.device.use import DeviceUseAnalysis

STEP = [(0, 1_000, 0, {"thread_id": 0})]
BESIDE = {"thread_id": 1}


def classes(**literals):
    sets = host_classes(trace(steps=STEP, span_ns=1_000, **literals))[0].sets
    times = {key: owned.total for key, owned in sets.items() if owned.total}
    assert sum(times.values()) == 1_000
    return times


def test_who_has_nothing_to_compute_waits_in_the_collective_of_another_thread():
    # backward computes until 500 while gloo reduces from 300 to 800; the optimizer computes from 700 on
    operators = [(0, 500, "aten::mm", "op"), (700, 300, "aten::add_", "op")]
    gloo = (300, 500, "gloo:all_reduce", "annotation", BESIDE)
    assert classes(host_ops=[*operators, gloo]) == {"communication": 200, "host_compute": 800}


@pytest.mark.parametrize("name", ["c10d::allreduce_", "record_param_comms", "DistributedDataParallel.forward"])
def test_an_operation_that_waits_for_a_collective_computes_nothing(name):
    operations = [(0, 900, name, "op"), (100, 500, "gloo:all_reduce", "annotation", BESIDE)]
    assert classes(host_ops=operations) == {"communication": 500, "host_compute": 500}


def test_while_the_program_loads_it_waits_for_input_and_not_for_the_collective_beside_it():
    operations = [
        (0, 400, "data loading", "annotation"),
        (100, 600, "gloo:all_reduce", "annotation", BESIDE),
    ]
    assert classes(host_ops=operations) == {"input_wait": 400, "communication": 300, "host_compute": 300}


@pytest.mark.parametrize("name", ["MPI_Allreduce", "MPI_Recv", "PMPI_Waitall"])
def test_a_call_of_mpi_is_communication_with_all_that_it_calls(name):
    nvtx = [(100, 600, name)]
    waits = [(200, 100, "cudaStreamSynchronize")]
    assert classes(nvtx=nvtx, cuda_api=waits) == {"communication": 600, "host_compute": 400}


def test_what_starts_a_transfer_of_mpi_or_asks_for_a_rank_is_none():
    assert classes(nvtx=[(0, 300, "MPI_Irecv"), (300, 300, "MPI_Comm_rank")]) == {"host_compute": 1_000}


def test_work_of_the_device_comes_before_the_wait_of_the_host():
    kernels = [(200, 300, "gemm")]
    times = classes(nvtx=[(100, 600, "MPI_Allreduce")], kernels=kernels, cuda_api=[(0, 10, "cudaLaunchKernel")])
    assert (times["device_compute"], times["communication"]) == (300, 300)


def test_ranges_of_operators_compute_where_gloo_was_recorded_by_nvtx():
    nvtx = [(0, 500, "aten::mm"), (300, 500, "gloo:all_reduce", BESIDE)]
    assert classes(nvtx=nvtx) == {"communication": 300, "host_compute": 700}


def test_the_idle_time_of_a_device_names_the_collective_that_the_host_waits_in():
    kernels = [(start, 100, "gemm") for start in (0, 900_000)]
    view = trace(kernels=kernels, nvtx=[(1_000, 800_000, "MPI_Allreduce")], cuda_api=[(0, 10, "cudaLaunchKernel")])
    use, gaps = DeviceUseAnalysis().run(view), IdleGapsAnalysis().run(view)
    assert use.idle_causes["communication"] == 800_000
    assert sum(use.idle_causes.values()) == 900_000 - 100
    assert gaps.by_cause == {"communication": (1, 899_900)}


def test_only_collectives_that_end_together_are_compared_between_ranks():
    nvtx = [(0, 10, "MPI_Bcast"), (20, 10, "MPI_Barrier"), (40, 10, "MPI_Send"), (60, 10, "gloo:all_reduce")]
    assert joint_collectives(trace(nvtx=nvtx))["name"].to_list() == ["MPI_Barrier", "gloo:all_reduce"]


@pytest.mark.parametrize(
    ("call", "own"),
    [("cuMemHostRegister_v2", 400), ("cudaMallocHost", 400), ("cudaStreamSynchronize", 0), ("cudaMemcpyAsync", 0)],
)
def test_memory_that_mpi_registers_is_work_of_the_rank_and_no_wait(call, own):
    times = classes(nvtx=[(100, 600, "MPI_Recv")], cuda_api=[(150, 400, call)])
    assert times["communication"] == 600 - own
    assert times.get("allocation", 0) == own
