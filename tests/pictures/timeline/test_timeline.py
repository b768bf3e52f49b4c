"""Timelines of small tables: lanes, rows, names, arrows, levels and intervals of detail."""

import numpy as np
import pytest

from tests.analyses.builders import trace
from tests.support.unpacking import unpacked
from traceviz.pictures.timeline import timeline as module
from traceviz.pictures.timeline.timeline import timeline
from traceviz.report.pictures.packed import packed


def rows(shown, key):
    """Return rows of a lane as lists of ``(start, duration, name)``."""
    (lane,) = (lane for lane in shown.lanes if lane.key == key)
    return [
        [
            (int(start), int(last), shown.names[name])
            for start, last, name in zip(row.starts, row.durations, row.names, strict=True)
        ]
        for row in lane.rows
    ]


def keys(shown):
    return [lane.key for lane in shown.lanes]


def family(shown, name):
    return shown.families[shown.family_of[shown.names.index(name)]].key


def spans(shown):
    """Return the place of each event: ``(lane, row, start)``, by its number."""
    found = {}
    for lane in shown.lanes:
        for number, row in enumerate(lane.rows):
            for event, start in zip(row.events.tolist(), row.starts.tolist(), strict=True):
                assert event not in found
                found[event] = (lane.key, number, start)
    return found


def arrows(shown, kind):
    places = spans(shown)
    return [
        (places[source], places[target])
        for one in shown.arrows
        if one.kind == kind
        for source, target in zip(one.sources.tolist(), one.targets.tolist(), strict=True)
    ]


def test_kernels_copies_fills_and_graphs_of_a_stream_are_one_lane_by_time():
    shown = timeline(
        trace(
            kernels=[(10, 5, "ampere_sgemm_128x64_nn"), (40, 5, "vectorized_elementwise_kernel")],
            memcpy=[(0, 5, "h2d", "pageable", "device", 100)],
            memset=[(20, 5, 64)],
            graphs=[(30, 5, 3)],
        )
    )
    assert rows(shown, "device-0-0-7") == [
        [
            (0, 5, "copy host to device, pageable"),
            (10, 5, "ampere_sgemm_128x64_nn"),
            (20, 5, "fill device"),
            (30, 5, "CUDA graph 3"),
            (40, 5, "vectorized_elementwise_kernel"),
        ]
    ]
    assert family(shown, "copy host to device, pageable") == "copy_h2d"
    assert family(shown, "ampere_sgemm_128x64_nn") == "gemm"
    assert family(shown, "fill device") == "memset"
    assert (shown.events, shown.kept) == (5 + 9, 5 + 9)  # nine intervals of classes


def test_streams_devices_and_processes_have_lanes_of_their_own():
    shown = timeline(
        trace(
            kernels=[
                (0, 5, "a"),
                (1, 5, "a", {"stream": 8}),
                (2, 5, "a", {"device_id": 1}),
                (3, 5, "a", {"process_id": 1}),
                (4, 5, "a", {"stream": None}),
            ]
        )
    )
    device = [key for key in keys(shown) if key.startswith("device")]
    assert device == ["device-0-0--1", "device-0-0-7", "device-0-0-8", "device-0-1-7", "device-1-0-7"]
    assert [lane.label for lane in shown.lanes if lane.key == "device-0-0-8"] == ["GPU 0 stream 8"]


def test_kernels_that_overlap_in_a_stream_are_all_there_in_further_rows():
    shown = timeline(trace(kernels=[(0, 100, "a"), (10, 50, "b"), (20, 100, "c"), (60, 5, "d"), (100, 5, "e")]))
    assert rows(shown, "device-0-0-7") == [
        [(0, 100, "a"), (100, 5, "e")],
        [(10, 50, "b"), (60, 5, "d")],
        [(20, 100, "c")],
    ]


def test_events_without_length_or_end_are_kept():
    shown = timeline(
        trace(nvtx=[(5, 0, "mark", {"kind": "mark"}), (7, None, "open", {"kind": "start_end"}), (9, 4, "a")])
    )
    assert rows(shown, "ranges-0-0") == [[(5, 0, "mark"), (7, 0, "open"), (9, 4, "a")]]


def test_operators_lie_by_their_depth_and_have_the_family_of_what_they_compute():
    shown = timeline(
        trace(
            host_ops=[
                (0, 100, "ProfilerStep#1", "step"),
                (10, 30, "nn.Module: Net_0", "python"),
                (15, 10, "aten::mm", "op"),
                (50, 40, "enumerate(DataLoader)", "input"),
                (0, 10, "aten::mm", "op", {"thread_id": 1}),
                (20, 10, "cnn/conv1:Conv2D", "op", {"thread_id": 1}),
                (40, 10, "my_own_op", "op", {"thread_id": 1}),
            ]
        )
    )
    assert rows(shown, "ops-0-0") == [
        [(0, 100, "ProfilerStep#1")],
        [(10, 30, "nn.Module: Net_0"), (50, 40, "enumerate(DataLoader)")],
        [(15, 10, "aten::mm")],
    ]
    assert rows(shown, "ops-0-1") == [[(0, 10, "aten::mm"), (20, 10, "cnn/conv1:Conv2D"), (40, 10, "my_own_op")]]
    known = {name: family(shown, name) for name in ("nn.Module: Net_0", "aten::mm", "cnn/conv1:Conv2D", "my_own_op")}
    assert list(known.values()) == ["module", "matmul", "convolution", "op"]


def test_calls_have_the_family_of_what_they_do_and_point_to_the_work_that_they_launched():
    shown = timeline(
        trace(
            cuda_api=[
                (0, 5, "cudaLaunchKernel", {"correlation_id": 1}),
                (6, 5, "cudaMemcpyAsync", {"correlation_id": 2}),
                (12, 30, "cudaDeviceSynchronize"),
                (50, 1, "cudaLaunchKernel", {"correlation_id": 1, "process_id": 1, "thread_id": 3}),
            ],
            kernels=[(8, 10, "k", {"correlation_id": 1}), (60, 9, "k", {"correlation_id": 1, "process_id": 1})],
            memcpy=[(20, 4, "d2h", "device", "pinned", 8, {"correlation_id": 2})],
        )
    )
    names = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize")
    assert [family(shown, name) for name in names] == ["launch_call", "memory_call", "sync_call"]
    assert arrows(shown, "launch") == [
        (("api-0-0", 0, 0), ("device-0-0-7", 0, 8)),
        (("api-0-0", 0, 6), ("device-0-0-7", 0, 20)),
        (("api-1-3", 0, 50), ("device-1-0-7", 0, 60)),
    ]


def test_operators_point_to_work_where_no_call_is_known():
    shown = timeline(
        trace(host_ops=[(0, 5, "fusion", "op", {"correlation_id": 4})], kernels=[(8, 10, "k", {"correlation_id": 4})])
    )
    assert arrows(shown, "launch") == [(("ops-0-0", 0, 0), ("device-0-0-7", 0, 8))]


def test_steps_and_classes_come_first_and_classes_cover_the_whole_capture():
    shown = timeline(
        trace(
            steps=[(100 * number, 100, number) for number in range(6)],
            kernels=[(100 * number + 50, 20, "k") for number in range(6)],
            nvtx=[(100 * number, 30, "data loading") for number in range(6)],
        )
    )
    assert keys(shown) == ["steps-0", "classes-0", "device-0-0-7", "ranges-0-0"]
    assert rows(shown, "steps-0")[0][-1] == (500, 100, "step 5")
    (classes,) = rows(shown, "classes-0")
    assert classes[:3] == [(0, 30, "input wait"), (30, 20, "other host time"), (50, 20, "device compute")]
    assert sum(last for _, last, _ in classes) == 600
    assert family(shown, "input wait") == "input_wait"


def test_stacks_are_rows_by_depth_and_the_same_frame_in_samples_after_each_other_is_one_span():
    shown = timeline(
        trace(
            stacks=[(0, 10, 2), (10, 10, 3), (20, 10, 1), (40, 10, 1), (0, 10, 0, {"thread_id": 1})],
            stack_frames=[
                (0, None, "main", "train.py", 1),
                (1, 0, "load", "data.py", 5),
                (2, 0, "load", "data.py", 6),
                (3, 2, "decode", "PIL/Image.py", 9, "library"),
            ],
        )
    )
    assert rows(shown, "stacks-0-0") == [
        [(0, 30, "main (train.py)"), (40, 10, "main (train.py)")],
        [(0, 30, "load (data.py)"), (40, 10, "load (data.py)")],
        [(10, 10, "decode (PIL/Image.py)")],
    ]
    assert rows(shown, "stacks-0-1") == [[(0, 10, "main (train.py)")]]
    assert [family(shown, name) for name in ("load (data.py)", "decode (PIL/Image.py)")] == ["python", "library"]


def test_what_began_before_the_trace_is_in_the_timeline():
    of_host = {"device_id": None, "unit": "%"}
    shown = timeline(
        trace(
            phases=[(-500, 2000, "program", "train.py"), (-100, 200, "loading", "torch.load")],
            samples=[(-600, "program CPU", 50.0, of_host), (2500, "program CPU", 90.0, of_host)],
            nvtx=[(0, 10, "a")],
        )
    )
    assert (shown.start_ns, shown.end_ns) == (-600, 2500)
    assert rows(shown, "phases-0") == [[(-500, 2000, "program: train.py")], [(-100, 200, "loading: torch.load")]]
    (curve,) = (curve for curve in shown.curves if curve.key.startswith("sample"))
    assert (curve.label, curve.unit, curve.times.tolist()) == ("CPU, program", "ratio", [-600, 2500])
    assert curve.values.tolist() == [0.5, 0.9]


def test_memory_in_use_is_a_curve_of_each_pool():
    events = [(at, "alloc", 1, {"in_use_bytes": 10 * at, "pool": "CUDA:0"}) for at in range(3)]
    shown = timeline(trace(memory_events=[*events, (3, "alloc", 1, {"pool": "none"})], nvtx=[(0, 10, "a")]))
    assert [(curve.label, curve.unit, curve.values.tolist()) for curve in shown.curves] == [
        ("GPU 0 memory in use, CUDA:0", "bytes", [0.0, 10.0, 20.0])
    ]


def test_the_use_of_a_device_is_a_share_of_each_part_of_the_timeline():
    shown = timeline(trace(kernels=[(0, 5000, "k"), (7500, 2500, "k")]))
    (curve,) = shown.curves
    assert (curve.label, curve.unit, curve.times.size) == ("GPU 0 in use", "ratio", 1000)
    assert (curve.values[:500].min(), curve.values[500:750].max(), curve.values[750:].min()) == (1.0, 0.0, 1.0)


def test_the_same_collective_of_two_ranks_is_joined():
    of_rank = [{"process_id": rank, "device_id": rank} for rank in (0, 1)]
    calls = [
        (1000 * number + 100 * rank, 500 - 100 * rank, "allreduce", {**of_rank[rank], "group": "0", "group_size": 2})
        for number in range(4)
        for rank in (0, 1)
    ]
    kernels = [
        (start, last, "ncclDevKernel_AllReduce", of_rank[row % 2]) for row, (start, last, *_) in enumerate(calls)
    ]
    shown = timeline(trace(collectives=calls, kernels=kernels))
    assert arrows(shown, "collective") == [
        (("collectives-0", 0, 1000 * number), ("collectives-1", 0, 1000 * number + 100)) for number in range(4)
    ]


def test_a_trace_of_nothing_has_a_timeline_of_nothing():
    shown = timeline(trace())
    assert (shown.lanes, shown.curves, shown.arrows, shown.events, shown.kept) == ((), (), (), 0, 0)
    assert unpacked(packed(shown))[0].events == 0


def test_every_event_is_there_once_and_counted():
    shown = timeline(
        trace(
            kernels=[(10 * at, 15, f"k{at % 3}") for at in range(100)],
            cuda_api=[(7 * at, 9, "cudaLaunchKernel") for at in range(100)],
            os_calls=[(3 * at, 2, "read") for at in range(50)],
            overhead=[(5, 5, "flush")],
        )
    )
    found = spans(shown)
    assert sorted(found) == list(range(shown.kept))
    assert shown.kept == shown.events
    assert sum(key.startswith("device") for key, *_ in found.values()) == 100
    assert sum(key.startswith("api") for key, *_ in found.values()) == 100
    assert {key for key, *_ in found.values()} >= {"os-0-0", "profiler-0"}


STEPS = [(1000 * number, 1000 if number != 7 else 1500, number) for number in range(8)]
KERNELS = [(1000 * step + 10 * at, 5, f"k{at % 2}") for step in range(8) for at in range(100)]


def test_beyond_the_budget_detail_is_where_steps_tell_most_and_levels_cover_everything():
    shown = timeline(trace(steps=STEPS, kernels=KERNELS), budget=700)
    assert shown.events == 800 + 8 + 1600  # kernels, steps, classes
    assert shown.kept <= 720
    assert [(one.start_ns, one.reason) for one in shown.details][-1][0] == 7000
    assert "the slowest step, 7" in shown.details[-1].reason
    (lane,) = (lane for lane in shown.lanes if lane.key == "device-0-0-7")
    (row,), ((level,),) = lane.rows, lane.levels
    assert row.starts.size < 800
    windows = [(one.start_ns, one.end_ns) for one in shown.details]
    assert all(any(begin <= start < end for begin, end in windows) for start in row.starts.tolist())
    assert (level.cells * level.width_ns).min() < 20
    assert (level.cells * level.width_ns).max() > 7900
    assert set(level.names.tolist()) == {shown.names.index("k0"), shown.names.index("k1")}


def test_a_budget_that_is_enough_needs_no_detail():
    shown = timeline(trace(steps=STEPS, kernels=KERNELS), budget=2408)
    assert (shown.events, shown.kept, shown.details) == (2408, 2408, ())


def test_without_steps_detail_is_around_the_middle():
    shown = timeline(trace(kernels=[(10 * at, 5, "k") for at in range(1000)]), budget=500)
    (detail,) = shown.details
    assert detail.start_ns < 5000 < detail.end_ns
    assert "around the middle" in detail.reason
    assert 480 <= shown.kept <= 510


def test_what_began_before_a_stretch_and_reaches_into_it_is_there():
    kernels = [(10 * at, 5, "k") for at in range(1000)]
    shown = timeline(trace(kernels=[*kernels, (0, 9995, "long", {"stream": 9})]), budget=100)
    assert rows(shown, "device-0-0-9") == [[(0, 9995, "long")]]


def test_of_very_many_lanes_those_of_the_idlest_threads_are_left_out_and_the_last_lane_says_so(monkeypatch):
    monkeypatch.setattr(module, "MOST_LANES", 3)
    calls = [(10 * at, 5, "read", {"thread_id": thread}) for thread in range(5) for at in range(thread + 1)]
    shown = timeline(trace(os_calls=calls, span_ns=100))
    assert sorted(keys(shown)) == ["classes-0", "further", "os-0-3", "os-0-4"]
    assert shown.lanes[-1].label == "3 further lanes with 6 events are not shown"
    assert shown.events - shown.kept == 6


def test_names_of_ranges_lose_the_number_of_the_call():
    shown = timeline(trace(nvtx=[(10 * at, 5, f"aten::mm, seq = {at}, op_id = {at}") for at in range(20)]))
    assert [name for name in shown.names if name.startswith("aten")] == ["aten::mm"]


def test_very_many_names_become_one_for_those_that_take_least(monkeypatch):
    monkeypatch.setattr("traceviz.pictures.timeline.names.MOST_TEXT", 100)
    shown = timeline(trace(nvtx=[(100 * at, 1 + at, f"range number {at}") for at in range(50)]))
    assert "range number 49" in shown.names
    assert "range number 0" not in shown.names
    further = [name for name in shown.names if name.startswith("one of")]
    assert further == [f"one of {50 - len(shown.names) + 1:,} further names"]
    assert rows(shown, "ranges-0-0")[0][0] == (0, 1, further[0])


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\u202eevil", "x" * 1_000_000, "a\nb", "", "\x1b[31m"])
def test_names_of_strangers_are_harmless_and_short(name):
    shown = timeline(trace(kernels=[(0, 5, name)], nvtx=[(0, 5, name)], host_ops=[(0, 5, name, "op")]))
    texts = packed(shown)
    assert len(texts.header) < 20_000
    assert "<" not in texts.header
    assert unpacked(texts)[0].names == shown.names
    assert all(text.isprintable() and len(text) <= 2000 for text in shown.names)


def test_what_is_packed_is_what_was_drawn():
    shown = timeline(trace(steps=STEPS, kernels=KERNELS), budget=700)
    back, _ = unpacked(packed(shown))
    for lane, known in zip(back.lanes, shown.lanes, strict=True):
        for row, same in zip(lane.rows, known.rows, strict=True):
            assert np.array_equal(row.starts, same.starts)
            assert np.array_equal(row.events, same.events)
        for levels, own in zip(lane.levels, known.levels, strict=True):
            assert [level.covered.tolist() for level in levels] == [level.covered.tolist() for level in own]
