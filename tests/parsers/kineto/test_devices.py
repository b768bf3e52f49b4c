"""Device records of PyTorch's profiler become kernels, copies, fills, collectives, allocations."""

from __future__ import annotations

import pytest

from tests.parsers.kineto import files as k
from tests.parsers.kineto.tables import TRAINING, notes, read, rows


def test_kernel_has_what_the_file_says_of_its_launch(tmp_path):
    event = k.kernel(
        "gemm", 5, 25.5, correlation=70, device=1, stream=20, grid=(80, 2, 1), block=(128, 1, 1), registers=64,
        shared_memory=49_152, blocks_per_sm=1.5, occupancy=25, args={"graph node id": 12},
    )  # fmt: skip
    trace = read(tmp_path, [k.runtime("cudaLaunchKernel", 0, 3, correlation=70), event])
    (kernel,) = trace.arrow("kernels").to_pylist()
    expected = {
        "start_ns": 5_000,
        "dur_ns": 25_500,
        "stream": 20,
        "context_id": 1,
        "correlation_id": 70,
        "graph_node_id": 12,
        "grid_x": 80,
        "grid_y": 2,
        "block_x": 128,
        "registers_per_thread": 64,
        "static_shared_bytes": 49_152,
        "dynamic_shared_bytes": None,
        "blocks_per_sm": 1.5,
        "achieved_occupancy": 0.25,
        "name": "gemm",
    }
    assert {key: kernel[key] for key in expected} == expected
    assert rows(trace, "devices", "device_id", "ordinal", "kind") == [(0, 1, "gpu")]


def test_parts_of_graphs_are_named_as_pytorch_writes_them_into_their_work(tmp_path):
    first, second, third = (5 << 32 | number for number in range(3))
    attention = {"name": "attention", "module_fqn": "layers.0.attention"}

    def work(name: str, start: int, node: int, said: dict[str, str]) -> k.Event:
        args = {"graph id": 5, "graph node id": node, **said}
        return k.kernel(name, start, 5, correlation=1, stream=7, args=args)

    events = [
        k.runtime("cudaGraphLaunch", 10, 2, correlation=1),
        work("scores", 20, first, attention),
        work("gradient", 30, second, {**attention, "autograd_phase": "backward"}),
        work("other", 40, third, {}),
        k.fill(50, 5, correlation=1, args={"graph id": 5, "graph node id": third, "name": "zeros"}),
        work("scores", 120, first, attention),
        k.kernel("eager", 200, 5, args={"graph id": 0, "graph node id": 0, "name": "nothing"}),
    ]
    trace = read(tmp_path, events)
    columns = ("start_ns", "process_id", "graph_node_id", "part", "module", "phase")
    assert rows(trace, "graph_nodes", *columns) == [
        (10_000, 0, first, "attention", "layers.0.attention", None),
        (20_000, 0, second, "attention", "layers.0.attention", "backward"),
        (40_000, 0, third, "zeros", None, None),
    ]
    assert rows(trace, "kernels", "graph_node_id") == [(first,), (second,), (third,), (first,), (None,)]
    assert rows(trace, "threads", "name") == [(None,)]


def test_nodes_that_are_numbered_for_each_graph_get_numbers_of_their_own(tmp_path):
    of_graphs = ((2, 0), (2, 1), (3, 1), (3, 3 << 32 | 2))
    kernels = [
        k.kernel("k", 10 * place, 5, args={"graph id": graph, "graph node id": node})
        for place, (graph, node) in enumerate(of_graphs)
    ]
    numbers = [(2 << 32,), (2 << 32 | 1,), (3 << 32 | 1,), (3 << 32 | 2,)]
    assert rows(read(tmp_path, kernels), "kernels", "graph_node_id") == numbers


def test_work_that_is_shown_in_a_lane_ran_on_its_own_stream(tmp_path):
    kernel = k.kernel("k", 0, 5, stream=60, args={"graph id": 2, "graph node id": 2 << 32, "original_stream": 13})
    assert rows(read(tmp_path, [kernel]), "kernels", "stream") == [(13,)]


def test_op_of_device_work_is_the_innermost_around_its_call(tmp_path):
    trace = read(tmp_path, TRAINING)
    assert rows(trace, "kernels", "op") == [("aten::addmm",)]
    assert rows(trace, "memcpy", "op") == [(None,)]


def test_annotation_stands_in_where_no_op_is_around_the_call(tmp_path):
    events = [
        k.step(1, 0, 100),
        k.annotation("outer", 0, 50),
        k.annotation("nccl:all_reduce", 5, 20),
        k.runtime("cudaLaunchKernel", 10, 2, correlation=1),
        k.kernel("k", 30, 5, correlation=1),
    ]
    assert rows(read(tmp_path, events), "kernels", "op") == [("nccl:all_reduce",)]


def test_op_comes_from_the_external_id_where_the_call_is_not_in_the_file(tmp_path):
    events = [k.op("aten::mm", 0, 5, external=9), k.kernel("k", 10, 5, correlation=1, external=9), k.kernel("l", 20, 1)]
    trace = read(tmp_path, [*events, k.runtime("cudaLaunchKernel", 30, 1, correlation=2)])
    assert rows(trace, "kernels", "name", "op") == [("k", "aten::mm"), ("l", None)]
    assert notes(trace)["launches-missing"] == 2


def test_repeated_correlation_ids_lead_to_the_last_call_before_the_work(tmp_path):
    events = [
        k.op("first", 0, 10),
        k.runtime("cudaLaunchKernel", 2, 1, correlation=5),
        k.kernel("k", 20, 1, correlation=5),
        k.op("second", 100, 10),
        k.runtime("cudaLaunchKernel", 102, 1, correlation=5),
        k.kernel("k", 120, 1, correlation=5),
    ]
    trace = read(tmp_path, events)
    assert rows(trace, "kernels", "op") == [("first",), ("second",)]
    assert notes(trace)["correlations-repeated"] == 1
    # Where an id is repeated, the later call and its work get one of their own: tables are joined by it.
    assert rows(trace, "cuda_api", "correlation_id") == [(5,), (6,)]
    assert rows(trace, "kernels", "correlation_id") == [(5,), (6,)]


def test_callback_of_a_graph_ran_on_a_thread_and_not_on_a_device(tmp_path):
    args = {"device": 0, "stream": 7, "correlation": 1, "graph id": 5, "graph node id": 2}
    host = {"host process": k.PID, "host thread": 555}
    events = [
        k.runtime("cudaGraphLaunch", 0, 5, correlation=1),
        k.kernel("first", 10, 5, correlation=1, args={"graph id": 5, "graph node id": 0}),
        k.complete("EventRecord", 15, 0, "graph_event_node", pid=0, tid=7, args=args),
        k.complete("HostNode: log_loss", 15, 30, "graph_host_node", pid=0, tid=7, args={**args, **host}),
        k.kernel("second", 50, 5, correlation=1, args={"graph id": 5, "graph node id": 3}),
    ]
    trace = read(tmp_path, events)
    assert rows(trace, "processes", "pid") == [(k.PID,)]
    assert rows(trace, "host_ops", "name", "start_ns", "dur_ns") == [("HostNode: log_loss", 15_000, 30_000)]
    assert [trace.arrow("threads")["tid"][row["thread_id"]].as_py() for row in trace.arrow("host_ops").to_pylist()] == [
        555
    ]
    assert trace.rows("kernels") == 2
    assert "unknown-categories" not in notes(trace)


def test_rocm_notes_launch_shape_and_bytes_at_the_call(tmp_path):
    launch = {"grid": [16, 1, 1], "block": [256, 1, 1], "shared memory": 512, "stream": "0x0"}
    events = [
        k.runtime("hipLaunchKernel", 0, 1, correlation=1, args=launch),
        k.kernel("k", 5, 1, correlation=1, grid=None, block=None, context=None, device=2, stream=0),
        k.runtime("hipMemcpyWithStream", 8, 1, correlation=2, args={"size": "2560", "kind": "1"}),
        k.copy(12, 1, name="Memcpy HtoD (Host -> Device)", size=None, correlation=2, context=None, device=2, stream=0),
    ]
    trace = read(tmp_path, events, {"deviceProperties": [k.gpu(2, "AMD Instinct MI250X", warpSize=64, numSms=104)]})
    columns = ("grid_x", "block_x", "static_shared_bytes", "stream", "context_id")
    assert rows(trace, "kernels", *columns) == [(16, 256, 512, 0, None)]
    assert rows(trace, "memcpy", "kind", "bytes") == [("h2d", 2560)]
    assert rows(trace, "devices", "ordinal", "name", "sm_count", "compute_capability") == [
        (2, "AMD Instinct MI250X", 104, None)
    ]


def test_synchronisations_have_a_kind_and_no_stream_where_an_event_is_waited_for(tmp_path):
    events = [
        k.sync("Event Sync", 0, 1, stream=-1),
        k.sync("Stream Sync", 2, 1, stream=7, correlation=4),
        k.sync("Stream Wait Event", 4, 1),
        k.sync("Context Sync", 6, 1),
        k.sync("Something", 8, 1),
    ]
    assert rows(read(tmp_path, events), "sync", "kind", "stream", "device_id", "correlation_id") == [
        ("event", None, 0, None),
        ("stream", 7, 0, 4),
        ("stream_wait_event", 7, 0, None),
        ("context", 7, 0, None),
        ("unknown", 7, 0, None),
    ]


def test_ranges_of_the_program_are_scopes_on_devices(tmp_path):
    trace = read(tmp_path, [k.device_annotation("## forward ##", 3, 5), k.kernel("k", 3, 5)])
    assert rows(trace, "device_ops", "name", "kind", "device_id", "dur_ns") == [("## forward ##", "scope", 0, 5_000)]


def test_collectives_come_from_arguments_else_from_names_of_kernels(tmp_path):
    events = [
        k.collective(0, 5, group_size=2, elements=2_049_000, correlation=3, stream=40),
        k.collective(10, 5, kind=None),
        k.collective(20, 5, kind=None, name="ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)"),
        k.collective(30, 5, kind=None, name="ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"),
        k.collective(40, 5, kind=None, name="ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclWorkElem)"),
        k.kernel("gemm", 50, 5),
    ]
    trace = read(tmp_path, events)
    assert rows(trace, "collectives", "name", "group", "group_size", "dtype", "in_elements", "stream") == [
        ("allreduce", "0", 2, "Float", 2_049_000, 40),
        ("allreduce", None, None, None, None, 7),
        ("send_recv", None, None, None, None, 7),
        ("unknown", None, None, None, None, 7),
        ("reduce_scatter", None, None, None, None, 7),
    ]
    assert trace.rows("kernels") == 6


@pytest.mark.parametrize(
    ("around", "stated", "found"),
    [
        ("nccl:all_to_all", None, "all_to_all"),
        ("nccl:_all_gather_base", None, "allgather"),
        ("nccl:_reduce_scatter_base", None, "reduce_scatter"),
        ("nccl:recv 0<-1", None, "send_recv"),
        ("nccl:coalesced", None, "send_recv"),  # no facts: the kernel's name
        ("## all_to_all ##", None, "send_recv"),
        ("nccl:all_to_all", "_allgather_base", "_allgather_base"),
    ],
)
def test_the_range_around_its_launch_says_more_of_a_collective_than_its_kernel(tmp_path, around, stated, found):
    kernel = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)"
    events = [
        k.annotation(around, 0, 20),
        k.op("record_param_comms", 1, 10),
        k.runtime("cudaLaunchKernel", 2, 3, correlation=7),
        k.collective(30, 5, kind=stated, name=kernel, correlation=7),
        k.collective(40, 5, kind=None, name=kernel, correlation=8),  # whose call the capture does not hold
    ]
    assert rows(read(tmp_path, events), "collectives", "name") == [(found,), ("send_recv",)]


def test_allocations_belong_to_the_op_around_them_and_to_their_device(tmp_path):
    events = [
        k.op("aten::empty", 0, 10),
        k.memory(5, 512, in_use=1_024, reserved=2_048),
        k.memory(20, -512, device=None, address=-8, in_use=0),
        k.kernel("k", 30, 1),
    ]
    columns = ("kind", "memory", "pool", "device_id", "address", "bytes", "op", "in_use_bytes", "reserved_bytes")
    assert rows(read(tmp_path, events), "memory_events", *columns) == [
        ("alloc", "device", "CUDA:0", 0, 4_096, 512, "aten::empty", 1_024, 2_048),
        ("free", "pageable", "CPU", None, -8, 512, None, 0, None),
    ]


def test_out_of_memory_is_noted(tmp_path):
    events = [k.op("a", 0, 1), {**k.memory(0, 5), "name": "[OutOfMemory]"}]
    assert notes(read(tmp_path, events))["out-of-memory"] == 1


def test_devices_are_those_listed_and_those_that_worked(tmp_path):
    header = {"deviceProperties": [k.gpu(0), k.gpu(1, numSms=108)]}
    trace = read(tmp_path, [k.kernel("k", place, 1, device=ordinal) for place, ordinal in enumerate((0, 1, 6))], header)
    columns = ("device_id", "ordinal", "name", "sm_count", "compute_capability", "memory_bytes", "max_threads_per_sm")
    assert rows(trace, "devices", *columns) == [
        (0, 0, "NVIDIA A100-SXM4-40GB", 108, "8.0", 42_505_273_344, 2_048),
        (1, 1, "NVIDIA A100-SXM4-40GB", 108, "8.0", 42_505_273_344, 2_048),
        (2, 6, None, None, None, None, None),
    ]
    assert rows(trace, "kernels", "device_id") == [(0,), (1,), (2,)]


def test_capture_of_the_cpu_alone_has_no_tables_of_devices(tmp_path):
    trace = read(tmp_path, [k.step(1, 0, 10), k.op("aten::mm", 1, 5)])
    assert not {"kernels", "memcpy", "memset", "cuda_api", "collectives"} & set(trace)
    assert trace.rows("devices") == 0
    assert notes(trace)["no-device"] is None


def test_device_that_did_nothing_leaves_empty_tables_and_a_warning(tmp_path):
    trace = read(tmp_path, [k.op("aten::mm", 1, 5)], {"deviceProperties": [k.gpu(0)]})
    assert (trace.rows("kernels"), trace.rows("devices")) == (0, 1)
    assert "kernels" in trace
    assert "device-idle" in notes(trace)


def test_a_copy_goes_the_way_that_its_argument_says(tmp_path):
    ways = ("DEVICE_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_DEVICE", "SIDEWAYS")
    events = [
        k.complete("dma_request", 10 * i, 5, "mtia_ccp_events", pid=0, tid=7, args={"direction": way, "size": 100 + i})
        for i, way in enumerate(ways)
    ]
    trace = read(tmp_path, [*events, k.op("aten::mm", 0, 50)], {"deviceProperties": [k.gpu(0)]})
    assert rows(trace, "memcpy", "kind", "bytes") == [("d2h", 100), ("h2d", 101), ("d2d", 102), ("unknown", 103)]


def test_ranges_of_counters_are_no_device_work_and_no_sign_of_an_idle_device(tmp_path):
    ranges = [k.complete(name, start, 50, "cuda_profiler_range") for name, start in (("gemm", 0), ("relu", 50))]
    calls = [k.op("aten::mm", 1, 80), k.runtime("cudaLaunchKernel", 5, 40, correlation=1)]
    trace = read(tmp_path, [*calls, *ranges], {"deviceProperties": [k.gpu(0)]})
    assert not {"kernels", "memcpy", "memset", "collectives"} & set(trace)  # not recorded, which is not "none ran"
    assert (trace.rows("cuda_api"), trace.rows("host_ops"), trace.rows("devices")) == (1, 1, 1)
    assert notes(trace)["kernels-measured-with-counters"] == 2
    assert "device-idle" not in notes(trace)


def test_kernels_beside_ranges_of_counters_are_kept(tmp_path):
    ranges = [k.complete("gemm", 0, 50, "cuda_profiler_range")]
    trace = read(tmp_path, [k.runtime("cudaLaunchKernel", 5, 4, correlation=1), k.kernel("gemm", 10, 5), *ranges])
    assert (trace.rows("kernels"), notes(trace)["kernels-measured-with-counters"]) == (1, 1)


@pytest.mark.parametrize(("stated", "known"), [(0.5, 0.5), (1e308, None), (-1, None), ("nan", None), ("inf", None)])
def test_blocks_per_sm_that_no_launch_can_have_are_not_known(tmp_path, stated, known):
    trace = read(tmp_path, [k.kernel("k", 0, 1, args={"blocks per SM": stated})])
    assert rows(trace, "kernels", "blocks_per_sm") == [(known,)]


@pytest.mark.parametrize(
    ("listed", "working", "names", "of_work"),
    [
        ([0], [9], {0: "GPU 0"}, [0]),
        ([0, 1, 2], [2], {0: "GPU 0", 1: "GPU 1", 2: "GPU 2"}, [2]),
        ([0, 1], [2, 3], {0: "GPU 0", 1: "GPU 1"}, [0, 1]),
        ([0, 1], [5, 1], {0: "GPU 0", 1: "GPU 1"}, [0, 1]),
        ([0], [5, 4], {0: "GPU 0", 5: None}, [5, 0]),
        ([], [4], {4: None}, [4]),
    ],
)
def test_work_under_a_number_that_the_list_does_not_know_is_that_of_a_listed_device(
    tmp_path,
    listed,
    working,
    names,
    of_work,
):
    header = {"deviceProperties": [k.gpu(number, f"GPU {number}") for number in listed]}
    events = [k.kernel("k", 10 * place, 5, device=number) for place, number in enumerate(working)]
    trace = read(tmp_path, events, header)
    assert dict(rows(trace, "devices", "ordinal", "name")) == names
    ordinal = dict(rows(trace, "devices", "device_id", "ordinal"))
    assert [ordinal[device] for (device,) in rows(trace, "kernels", "device_id")] == of_work
    assert notes(trace).get("devices-matched", 0) == sum(a != b for a, b in zip(working, of_work, strict=True))


@pytest.mark.parametrize(
    ("name", "category", "table"),
    [
        ("__amd_rocclr_copyBuffer.kd", "kernel", "memcpy"),
        ("__amd_rocclr_fillBufferAligned.kd", "kernel", "memset"),
        ("event_wait", "mtia_ccp_events", "sync"),
        ("event_record", "mtia_ccp_events", "sync"),
        ("dma_request", "mtia_ccp_events", "memcpy"),
        ("pe_exe", "mtia_ccp_events", "kernels"),
        ("event_wait", "kernel", "kernels"),
        ("my__amd_rocclr_copyBuffer", "kernel", "kernels"),
    ],
)
def test_kernels_that_copy_fill_or_wait_for_the_runtime_are_no_kernels_of_the_program(tmp_path, name, category, table):
    trace = read(tmp_path, [k.op("aten::mm", 0, 1), {**k.kernel(name, 10, 5), "cat": category}])
    assert {each: trace.rows(each) for each in ("kernels", "memcpy", "memset", "sync") if trace.rows(each)} == {
        table: 1
    }
