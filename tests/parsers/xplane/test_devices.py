"""Captures of several kinds of devices: calls of HIP, pools of TPUs, steps of replicas that run apart."""

from tests.parsers.xplane.files import Ref, Unsigned, event, line, plane, space
from tests.parsers.xplane.traces import US, gpu, host, notes, rows, tables_of, training
from traceviz.trace.tables import ANNOTATED_STEPS_NOTE


def test_launches_on_gpus_of_amd_are_calls_of_hip(tmp_path):
    events = [
        event("Cijk_Ailk_Bljk", 0, US, {"correlation_id": 1}),
        event("MemcpyD2D", 2 * US, US, {"correlation_id": 2}),
        event("hipMemcpyDtoDAsync", 4 * US, US, {"correlation_id": 3}),
    ]
    amd = plane("/device:GPU:0", stats={"device_vendor": "AMD"})
    tables = tables_of(tmp_path, space(host(line(1, *events)), amd))
    assert rows(tables, "cuda_api", "name", "domain") == [
        ("hipLaunchKernel", "runtime"),
        ("hipMemcpyDtoDAsync", "runtime"),
        ("hipMemcpyDtoDAsync", "runtime"),
    ]


def test_pools_of_tpus_are_told_apart_by_their_number_and_no_op_is_null(tmp_path):
    events = [
        event("MemoryAllocation", 0, 0, {"index_on_host": 1, "allocation_bytes": 64, "tf_op": Ref("(null)")}),
        event("MemoryAllocation", US, 0, {"index_on_host": 3, "allocation_bytes": 32, "tf_op": Ref("dummy")}),
        event("MemoryAllocation", 2 * US, 0, {"allocation_bytes": 16}),
    ]
    tpus = [plane(f"/device:TPU:{number}", plane_id=number) for number in range(2)]
    tables = tables_of(tmp_path, space(host(line(1, *events)), *tpus))
    assert rows(tables, "memory_events", "device_id", "memory", "pool", "bytes", "op") == [
        (1, "device", None, 64, None),
        (None, "device", "device 3", 32, "dummy"),
        (None, "unknown", None, 16, None),
    ]


def test_unmarked_steps_are_those_of_each_gpu_where_replicas_run_apart(tmp_path):
    run = event("FunctionRun", 0, 8 * US, {"_r": 1})
    launches = [event("cuLaunchKernel", n * US, US, {"correlation_id": n}) for n in (1, 2)]
    work = [event("k", n * 100 * US, n * 10 * US, {"correlation_id": Unsigned(n)}) for n in (1, 2)]
    gpus = [
        plane(f"/device:GPU:{number}", line(13, one, name="Stream #13(Compute)"), plane_id=number)
        for number, one in enumerate(work)
    ]
    tables = tables_of(tmp_path, space(host(line(1, run, *launches)), *gpus))
    assert rows(tables, "steps", "start_ns", "dur_ns", "device_id", "group_id") == [
        (100_000, 10_000, 0, 0),
        (200_000, 20_000, 1, 0),
    ]


def test_steps_that_xprof_does_not_take_for_steps_are_noted(tmp_path):
    batches = [event("Profiled batch", n * 100 * US, 90 * US, {"step_num": n}) for n in range(2)]
    tables = tables_of(tmp_path, space(host(line(1, *batches))))
    assert tables.rows("steps") == 2
    assert notes(tables)[ANNOTATED_STEPS_NOTE][0] == "info"
    assert ANNOTATED_STEPS_NOTE not in notes(tables_of(tmp_path, training(2)))


def test_an_own_gpu_keeps_the_calls_of_cuda(tmp_path):
    launch = event("some_kernel", 0, US, {"correlation_id": 1})
    assert rows(tables_of(tmp_path, space(host(line(1, launch)), gpu())), "cuda_api", "name") == [("cuLaunchKernel",)]


def test_a_copy_whose_name_says_no_direction_goes_the_way_of_its_call(tmp_path):
    calls = ("hipMemcpyDtoDAsync", "hipMemcpyHtoDAsync", "hipStreamWaitEvent")
    launches = [event(name, place * US, US, {"correlation_id": place + 1}) for place, name in enumerate(calls)]
    work = [
        event("__amd_rocclr_copyBuffer.kd", (place + 5) * US, US, {"correlation_id": place + 1}) for place in range(4)
    ]
    tables = tables_of(tmp_path, space(host(line(1, *launches)), gpu(line(1, *work))))
    assert rows(tables, "memcpy", "kind", "src_memory", "dst_memory", "bytes") == [
        ("d2d", "device", "device", None),
        ("h2d", "unknown", "device", None),
        ("unknown", "unknown", "unknown", None),  # its call is another
        ("unknown", "unknown", "unknown", None),  # and this has none
    ]


def test_kernels_by_which_rocm_copies_and_fills_are_copies_and_fills(tmp_path):
    names = ("__amd_rocclr_copyBuffer.kd", "__amd_rocclr_fillBufferAligned.kd", "gemm_fusion_dot.kd")
    work = [event(name, place * US, US, {"correlation_id": place + 1}) for place, name in enumerate(names)]
    tables = tables_of(tmp_path, space(host(), gpu(line(1, *work))))
    assert [tables.rows(name) for name in ("memcpy", "memset", "kernels")] == [1, 1, 1]
    assert rows(tables, "kernels", "name") == [("gemm_fusion_dot.kd",)]
