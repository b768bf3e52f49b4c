"""Traces whose processes are lanes: devices, the host's view of the same calls, and lanes that repeat others."""

import json

import pytest

from tests.parsers.kineto import files as k
from tests.parsers.kineto.tables import notes, read_bytes, rows
from traceviz.analyses.run import analyze
from traceviz.parsers.registry import identify

TASK = "/job:localhost/replica:0/task:0"


def named(pid, name, tid=0, what="process_name"):
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def lane(pid, name, *events):
    """Return the events ``(name, start, dur)`` of a process that is a lane of TensorFlow 1."""
    return [named(pid, name), *(k.complete(what, ts, dur, "Op", pid=pid, tid=0) for what, ts, dur in events)]


def timeline(*lanes):
    return json.dumps({"traceEvents": [event for events in lanes for event in events]}).encode()


SESSION = (
    lane(1, "/device:GPU:0/stream:15 Compute", ("MatMul", 100, 400), ("MEMCPYHtoD", 60, 20)),
    lane(2, "/device:GPU:0/stream:15 Tensors"),
    lane(3, "/device:GPU:0/stream:all Compute", ("MatMul", 100, 400), ("MEMCPYHtoD", 60, 20)),
    lane(4, "/device:GPU:0/memcpy Compute", ("MEMCPYHtoD", 60, 20)),
    lane(5, f"{TASK}/device:GPU:0 Compute", ("MatMul", 90, 5)),
    lane(6, f"{TASK}/device:CPU:0 Compute", ("IteratorGetNext", 0, 50), ("Cast", 50, 9)),
)


def test_streams_of_a_tensorflow_timeline_are_those_of_a_device_and_count_once(tmp_path):
    trace = read_bytes(tmp_path, timeline(*SESSION))
    assert rows(trace, "run", "producer", "framework") == [("TensorFlow timeline", "TensorFlow")]
    assert rows(trace, "kernels", "name", "device_id", "stream", "dur_ns") == [("MatMul", 0, 15, 400_000)]
    assert rows(trace, "memcpy", "kind", "stream", "dur_ns") == [("h2d", 15, 20_000)]
    assert sorted(rows(trace, "host_ops", "name", "category")) == [
        ("Cast", "op"), ("IteratorGetNext", "input"), ("MatMul", "op")
    ]  # fmt: skip
    assert rows(trace, "processes", "name") == [(TASK,)]
    assert sorted(rows(trace, "threads", "name")) == [("CPU:0 lane 0",), ("GPU:0 lane 0",)]


@pytest.mark.parametrize("device", ["/gpu:1", "/device:GPU:1", "/job:ps/replica:0/task:3/device:GPU:1"])
def test_all_streams_stand_for_a_device_without_single_ones(tmp_path, device):
    lanes = [
        lane(1, f"{device}/stream:all Compute", ("Conv2D", 0, 7)),
        lane(2, f"{device}/memcpy Compute", ("c", 0, 7)),
    ]
    trace = read_bytes(tmp_path, timeline(*lanes))
    assert rows(trace, "kernels", "name", "dur_ns") == [("Conv2D", 7_000)]
    assert rows(trace, "devices", "ordinal") == [(1,)]


def test_a_tensorflow_timeline_without_devices_is_of_the_cpu_and_has_one_number(tmp_path):
    trace = read_bytes(tmp_path, timeline(lane(1, f"{TASK}/device:CPU:0 Compute", ("MatMul", 0, 97), ("Sum", 97, 3))))
    report = analyze(trace)
    assert report.verdict.sentence.startswith("CPU only: no device work was captured. ")
    assert "mostly matrix products (97.0 %), above all MatMul (97.0 %)" in report.verdict.sentence
    assert report.fact("host_waits", "unexplained_share") == 0.0


def test_names_of_lanes_before_the_first_event_are_no_planes_of_xplane(tmp_path):
    names = [named(pid, f"/device:GPU:0/stream:{pid} Compute") for pid in range(20_000)]
    (tmp_path / "timeline.json").write_bytes(json.dumps({"traceEvents": [*names, *SESSION[0]]}).encode())
    assert identify(tmp_path / "timeline.json").format == "kineto"


def autograd(pid, tid, *events):
    return [{"name": n, "ph": "X", "ts": ts, "dur": d, "tid": tid, "pid": pid, "args": {}} for n, ts, d in events]


def test_cuda_functions_are_the_device_and_what_they_hold_counts_once(tmp_path):
    host = autograd("CPU functions", 1, ("conv2d", 0, 50), ("cudnn_convolution", 5, 40))
    work = (("conv2d", 10, 100), ("cudnn_convolution", 12, 96), ("contiguous", 13, 3))
    device = autograd("CUDA functions", 0, *work) + autograd("CUDA functions", 1, ("relu", 30, 8))
    trace = read_bytes(tmp_path, json.dumps(host + device).encode())
    assert rows(trace, "run", "producer") == [("PyTorch autograd profiler",)]
    assert sorted(rows(trace, "kernels", "name", "device_id", "dur_ns")) == [
        ("cudnn_convolution", 0, 96_000), ("relu", 1, 8_000)
    ]  # fmt: skip
    assert rows(trace, "device_ops", "name", "dur_ns") == [("conv2d", 100_000)]
    assert len(rows(trace, "host_ops", "name")) == 2


def test_cpu_functions_alone_are_of_the_cpu(tmp_path):
    trace = read_bytes(tmp_path, json.dumps(autograd("CPU functions", 1, ("aten::mm", 0, 50))).encode())
    assert "CPU only" in analyze(trace).verdict.sentence


def npu(collectives="HCCL"):
    """Return a step of 100 us: 30 of a kernel, a collective of 40 that starts within it and ends 30 later."""
    task = {"args": {"Task Type": "EVENT_WAIT_SQE"}}
    return [
        *(named(*pair) for pair in ((7, "Python"), (90, "Ascend Hardware"), (91, collectives), (92, "CANN"))),
        named(93, "Overlap Analysis"),
        named(91, "Group 0 Communication", 0, "thread_name"),
        named(91, "Plane 0", 1, "thread_name"),
        k.step(0, 0, 100, pid=7, tid=7),
        k.op("aten::mm", 0, 20, pid=7, tid=7),
        k.complete("Node@launch", 5, 5, "", pid=92, tid=7, connection_id=11),
        k.complete("aclnnMm_MatMulV2", 20, 30, "", pid=90, tid=2, connection_id=11, args={"Task Type": "AI_CORE"}),
        {**k.complete("EVENT_WAIT", 50, 30, "", pid=90, tid=2), **task},
        k.complete("SDMA", 60, 10, "", pid=90, tid=4, args={"Task Type": "SDMA"}),
        k.complete("hcom_allReduce__1_0", 40, 40, "", pid=91, tid=0, connection_id=12),
        k.complete("Notify_Wait", 40, 38, "", pid=91, tid=1),
        k.complete("Computing", 20, 30, "", pid=93, tid=0),
        k.complete("Communication(Not Overlapped)", 50, 30, "", pid=93, tid=2),
        k.complete("Free", 80, 20, "", pid=93, tid=3),
    ]


@pytest.mark.parametrize("name", ["HCCL", "Communication"])
def test_hardware_and_collectives_of_an_npu_are_a_device(tmp_path, name):
    trace = read_bytes(tmp_path, json.dumps(npu(name)).encode())
    assert sorted(rows(trace, "kernels", "name", "device_id", "dur_ns")) == [
        ("aclnnMm_MatMulV2", 0, 30_000), ("hcom_allReduce__1_0", 0, 40_000)
    ]  # fmt: skip
    assert rows(trace, "collectives", "name", "dur_ns") == [("allreduce", 40_000)]
    assert rows(trace, "cuda_api", "name", "correlation_id", "process_id") == [("Node@launch", 11, 0)]
    assert rows(trace, "processes", "pid") == [(7,)]
    report = analyze(trace)
    assert (
        "Exposed communication: for 30.0 % of the steady step time" in report.verdict.sentence
    )  # its own table: 30 us


def test_an_npu_without_collectives_has_none(tmp_path):
    events = [event for event in npu() if event["pid"] != 91]
    report = analyze(read_bytes(tmp_path, json.dumps(events).encode()))
    assert "ommunication" not in report.verdict.sentence
    assert "CPU only" not in report.verdict.sentence


def viztracer(*frames, overflow=False):
    events = [k.complete(name, ts, dur, "FEE", pid=pid, tid=pid) for pid, name, ts, dur in frames]
    members = {"traceEvents": events, "viztracer_metadata": {"version": "1.0", "overflow": overflow}}
    return json.dumps(members).encode()


NEXT = "_next_data (/opt/lib/python3.11/site-packages/torch/utils/data/dataloader.py:700)"
DECODE = "decode (/home/u/data.py:5)"


def test_the_process_that_takes_batches_is_judged_and_not_the_workers_of_its_loader(tmp_path):
    frames = [(1, NEXT, 0, 60), (1, "forward (/home/u/net.py:3)", 60, 40), (2, DECODE, 0, 100), (3, DECODE, 0, 100)]
    trace = read_bytes(tmp_path, viztracer(*frames, overflow=True))
    assert "net.py(3): forward" in {name.rpartition("/")[2] for (name,) in rows(trace, "host_ops", "name")}
    assert "events-lost" in notes(trace)
    assert "Highly input-bound: 60.0 % of steady step time" in analyze(trace).verdict.sentence


def test_a_program_without_a_loader_has_no_input_and_lost_nothing(tmp_path):
    trace = read_bytes(tmp_path, viztracer((1, "forward (/home/u/net.py:3)", 0, 40), (1, DECODE, 40, 60)))
    assert "events-lost" not in notes(trace)
    assert "Input: " not in analyze(trace).verdict.sentence


def test_phases_of_horovod_are_no_input_and_its_lanes_no_processes_of_a_program(tmp_path):
    tensors = [
        [named(pid, f"Broadcast_{pid}"), k.complete("BROADCAST", 10 * pid, 50, "", pid=pid),
         k.complete("WAIT_FOR_DATA", 10 * pid, 20, "", pid=pid)]
        for pid in range(1, 5)
    ]  # fmt: skip
    report = analyze(read_bytes(tmp_path, timeline(*tensors, lane(9, "Broadcast_9", ("INIT_NCCL", 150, 50)))))
    assert report.verdict.sentence.startswith("Events of an unknown program: 5 lanes")
    assert "For 31.6 % of the captured time, no lane works." in report.verdict.sentence
    assert "nput-bound" not in report.verdict.sentence
