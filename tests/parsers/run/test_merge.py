"""Sources of one run as one trace: who is who, when, and what is taken from whom."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.run.folders import SECOND, literal, no_manifest
from tests.support.traces import column, content, notes
from traceviz.core.errors import UsageError
from traceviz.parsers.run.manifest import Exit, RunManifest
from traceviz.parsers.run.merge import merge_sources
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

pytestmark = pytest.mark.process

GPU = {"ordinal": 0, "name": "H200"}


def merged(*sources, manifest=None, **options):
    return TraceTables(dict(merge_sources(sources, manifest or no_manifest(), **options)))


def nsys(t0=1_000, pid=12, **given):
    """Return a report of nsys: calls, kernels, ranges and system calls of one thread."""
    facts = {
        "kernels": [(10, 20, "gemm", {"correlation_id": 1})],
        "cuda_api": [(5, 3, "cudaLaunchKernel", {"correlation_id": 1})],
        "nvtx": [(0, 50, "step 0")],
        "os_calls": [(40, 5, "read")],
        "processes": [(0, "python3", {"pid": pid})],
        "threads": [(0, 0, "python3", {"tid": pid})],
        "devices": [(0, "H200", {**GPU, "uuid": "GPU-ab12-cd"})],
        **given,
    }
    return literal(
        "nsys", t0, run={"format": "nsys"}, **{name: rows for name, rows in facts.items() if rows is not None}
    )


def torch(t0=1_100, pid=12, rank=None, name="raw/torch/rank0", **given):
    """Return a trace of PyTorch's profiler: operations and steps of the same thread, and a worker's."""
    facts = {
        "host_ops": [(0, 30, "aten::add", "op", {"correlation_id": 1}), (5, 5, "work", "op", {"thread_id": 1})],
        "op_args": [(0, "Ev Idx", {"integer": 7})],
        "steps": [(0, 30, 3)],
        "processes": [(0, None, {"pid": pid, "rank": rank})],
        "threads": [(0, 0, None, {"tid": pid}), (1, 0, "pt_autograd_0", {"tid": pid + 5})],
        **given,
    }
    tables = {table: rows for table, rows in facts.items() if rows is not None}
    return literal("torch", t0, name=name, run={"format": "kineto", "framework": "PyTorch"}, **tables)


def xplane(t0=1_200, collector="tensorflow", pid=None, **given):
    """Return a capture of TensorFlow's profiler, which knows neither pids nor ids of threads."""
    facts = {
        "host_ops": [(0, 20, "IteratorGetNext", "input"), (0, 9, "Map", "pipeline", {"thread_id": 1})],
        "steps": [(0, 30, 0)],
        "processes": [(0, None, {"pid": None})],
        "threads": [(0, 0, "python3", {"tid": -77}), (1, 0, "tf_data", {"tid": 99})],
        **given,
    }
    return literal(collector, t0, pid=pid, run={"format": "xplane", "framework": "TensorFlow"}, **facts)


def sampler(t0=0, pid=12, until=2_000, step=500, **given):
    """Return samples of the program's processes."""
    rows = [(time, "cpu", 100.0, {"device_id": None}) for time in range(0, until, step)]
    facts = {"samples": rows, "processes": [(0, "python3", {"pid": pid})], "threads": [], **given}
    return literal("resources", t0, run={"format": "resources"}, **facts)


def stacks(t0=0, until=10, *, ended=True):
    """Return stacks of a program of 10 s that were sampled until then, in seconds."""
    of_process = {"thread_id": None}
    rows = [(0, until * SECOND, "program", "program", of_process)]
    rows += [] if ended else [(until * SECOND, 0, "unsampled", "stacks", of_process)]
    facts = {"phases": rows, "processes": [(0, "python3", {"pid": 12})], "threads": []}
    return literal("stacks", t0, run={"format": "stacks", "span_ns": until * SECOND}, **facts)


class TestEndedEarly:
    RAN = RunManifest(status="finished", pid=12, started_unix_ns=0, ended_unix_ns=10 * SECOND)

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            (stacks(), []),
            (stacks(until=9, ended=False), []),  # less than is written at once
            (stacks(until=4, ended=False), ["stacks ended early: it recorded 4.00 s of the 10.0 s"]),
            (sampler(until=10 * SECOND, step=SECOND), []),
            (sampler(until=3 * SECOND, step=SECOND), ["resources ended early: it recorded 2.00 s of the 10.0 s"]),
        ],
    )
    def test_a_recorder_that_ended_before_the_program_is_named_with_what_it_has(self, source, said):
        trace = merged(source, manifest=self.RAN)
        found = [message for code, message in notes(trace).items() if code == "recorder-ended-early"]
        assert [message.partition(" that the program ran")[0] for message in found] == said

    def test_the_time_without_samples_lasts_to_the_end_of_the_program(self):
        trace = merged(stacks(until=4, ended=False), manifest=self.RAN)
        phases = {row["kind"]: (row["start_ns"], row["dur_ns"]) for row in trace.arrow("phases").to_pylist()}
        assert phases == {"program": (0, 10 * SECOND), "unsampled": (4 * SECOND, 6 * SECOND)}

    def test_a_run_whose_end_is_not_known_is_not_judged_by_it(self):
        trace = merged(stacks(until=4, ended=False), manifest=RunManifest(pid=12, started_unix_ns=0))
        assert "recorder-ended-early" not in trace.arrow("notes")["code"].to_pylist()


class TestClock:
    def test_zero_is_the_first_event_and_the_span_ends_with_the_last(self):
        trace = merged(nsys(1_000), torch(1_100))
        run = trace.run_facts()
        assert (run["format"], run["t0_unix_ns"], run["span_ns"]) == ("run", 1_000, 130)
        assert column(trace, "kernels", "start_ns") == [10]
        assert column(trace, "steps", "start_ns") == [100]

    def test_samples_lie_before_and_after_what_was_traced(self):
        trace = merged(torch(1_100), sampler(0))
        assert (trace.run_facts()["t0_unix_ns"], trace.run_facts()["span_ns"]) == (1_100, 30)
        assert column(trace, "samples", "start_ns") == [-1_100, -600, -100, 400]

    def test_samples_alone_have_a_clock_of_their_own(self):
        trace = merged(sampler(7_000))
        assert (trace.run_facts()["t0_unix_ns"], trace.run_facts()["span_ns"]) == (7_000, 1_500)

    @pytest.mark.parametrize(
        ("started", "ended", "clock"),
        [
            (1_000, 5_620, (1_000, 4_620)),  # nsys starts before the program and saves after it: the sampler sees both
            (None, 5_620, (0, 5_620)),
            (1_000, None, (1_000, 5_480)),
            (-500, 9_000, (0, 6_480)),
            (6_900, 7_000, (0, 6_480)),  # the clocks differ: samples count more than the program's times
        ],
    )
    def test_samples_alone_last_as_long_as_the_program_and_not_as_its_recorders(self, started, ended, clock):
        ran = RunManifest(started_unix_ns=started, ended_unix_ns=ended)
        samples = [(time, "cpu", 50.0, {"device_id": None}) for time in (0, 3_000, 6_480)]
        empty = nsys(0, kernels=[], cuda_api=[], nvtx=[], os_calls=[], overhead=[(0, 6_400, "init")])
        for sources in ([sampler(0, samples=samples)], [sampler(0, samples=samples), empty]):
            trace = merged(*sources, manifest=ran)
            assert (trace.run_facts()["t0_unix_ns"], trace.run_facts()["span_ns"]) == clock
            assert column(trace, "samples", "start_ns") == [time - clock[0] for time in (0, 3_000, 6_480)]

    def test_what_a_profiler_does_for_itself_after_the_program_is_not_captured_time(self):
        trace = merged(nsys(1_000, overhead=[(0, 5, "init"), (60, 900, "save")]))
        assert trace.run_facts()["span_ns"] == 50
        assert trace.rows("overhead") == 2

    def test_windows_tell_when_each_table_was_recorded_and_by_whom(self):
        trace = merged(nsys(1_000), torch(1_100), sampler(0))
        rows = {row["recorded"]: (row["start_ns"], row["dur_ns"], row["source"]) for row in content(trace)["windows"]}
        assert rows["kernels"] == (0, 50, "nsys")
        assert rows["host_ops"] == (100, 30, "torch")
        assert rows["samples"] == (-1_000, 1_500, "resources")

    @pytest.mark.parametrize("lost", ["samples", "operations"])
    def test_a_source_without_a_time_of_day_is_left_out_and_named(self, lost):
        trace = merged(nsys(), sampler(None) if lost == "samples" else torch(None))
        assert "samples" not in trace
        assert "host_ops" not in trace
        assert "does not say at what time of day" in notes(trace)["source-not-aligned"]

    def test_a_trace_without_a_time_of_day_is_kept_where_it_is_the_only_one(self):
        trace = merged(torch(None), sampler(0))
        assert column(trace, "steps", "start_ns") == [0]
        assert trace.run_facts()["t0_unix_ns"] is None
        assert "samples" not in trace

    def test_a_source_of_another_day_is_left_out_and_named(self):
        ran = RunManifest(started_unix_ns=0, ended_unix_ns=5 * SECOND)
        trace = merged(nsys(1_000), torch(86_400 * SECOND), manifest=ran)
        assert "host_ops" not in trace
        assert trace.run_facts()["span_ns"] == 50
        assert "not those at which the program ran" in notes(trace)["source-not-aligned"]

    def test_it_is_said_how_much_of_the_run_was_profiled(self):
        ran = RunManifest(started_unix_ns=0, ended_unix_ns=60 * SECOND)
        window = torch(10 * SECOND, steps=[(0, 2 * SECOND, 3)])
        assert "recorded 2.00 s of the 60.0 s" in notes(merged(window, manifest=ran))["profiled-window"]

    def test_it_is_said_how_much_of_what_was_profiled_has_steps(self):
        traced = nsys(0, os_calls=[(0, 10 * SECOND, "read")])
        messages = notes(merged(traced, torch(4 * SECOND, steps=[(0, 2 * SECOND, 3)])))
        assert messages["profiled-window"] == "Steps and operations were recorded for 2.00 s of these 10.0 s."

    def test_nothing_is_said_of_a_run_that_was_profiled_throughout(self):
        ran = RunManifest(started_unix_ns=1_000, ended_unix_ns=1_050)
        assert set(notes(merged(nsys(), manifest=ran))) == {"tables-from"}


class TestOwners:
    def test_device_work_is_taken_once_and_from_nsys(self):
        trace = merged(nsys(), torch(kernels=[(0, 5, "gemm")], memcpy=[(6, 1, "h2d", "pinned", "device", 4)]))
        assert column(trace, "kernels", "start_ns") == [10]
        assert "memcpy" not in trace  # nsys recorded none; that of PyTorch is of the kernels left out
        assert "kernels, cuda_api, nvtx, os_calls from nsys" in notes(trace)["tables-from"]

    def test_device_work_is_taken_from_who_recorded_some(self):
        without = nsys(kernels=[], cuda_api=None)
        trace = merged(without, torch(kernels=[(0, 5, "gemm", {"correlation_id": 9})]))
        assert column(trace, "kernels", "correlation_id") == [9]
        assert column(trace, "host_ops", "correlation_id") == [1, None]  # they are of the same source

    def test_correlations_with_another_sources_device_work_are_dropped(self):
        assert column(merged(nsys(), torch()), "host_ops", "correlation_id") == [None, None]

    def test_operations_are_taken_from_every_framework_and_keep_their_arguments(self):
        trace = merged(torch(), xplane(pid=12))
        assert column(trace, "host_ops", "name") == ["aten::add", "work", "IteratorGetNext", "Map"]
        assert column(trace, "host_ops", "op_id") == [0, 1, 2, 3]
        assert column(trace, "op_args", "op_id") == [0]

    def test_steps_are_taken_from_one_framework(self):
        assert column(merged(torch(), xplane(pid=12)), "steps", "step") == [3]

    def test_steps_are_taken_from_the_framework_that_found_some(self):
        assert column(merged(torch(steps=[]), xplane(pid=12)), "steps", "step") == [0]

    def test_samples_of_all_are_kept(self):
        gpu = nsys(samples=[(0, "SM Active", 5.0)])
        assert column(merged(gpu, sampler(0, until=600)), "samples", "metric") == ["cpu", "cpu", "SM Active"]

    def test_a_note_on_a_missing_device_is_dropped_where_another_source_has_it(self):
        note = [("no-device", "info", "No device was recorded."), ("x", "info", "Another.")]
        assert "no-device" not in notes(merged(nsys(), torch(notes=note)))
        assert notes(merged(nsys(), torch(notes=note)))["x"] == "torch: Another."
        assert notes(merged(torch(notes=note)))["no-device"] == "No device was recorded."


class TestIdentity:
    def test_processes_are_joined_by_pid_and_threads_by_tid(self):
        trace = merged(nsys(), torch(rank=0), sampler())
        assert content(trace)["processes"] == [{"process_id": 0, "pid": 12, "name": "python3", "rank": 0}]
        threads = [(row["tid"], row["name"]) for row in content(trace)["threads"]]
        assert threads == [(12, "python3"), (17, "pt_autograd_0")]
        assert column(trace, "host_ops", "thread_id") == [0, 1]

    def test_ranks_are_processes_in_order_of_their_rank(self):
        ranks = [torch(pid=90, rank=0), torch(pid=31, rank=1, name="raw/torch/rank1"), sampler(pid=20)]
        trace = merged(*ranks)
        assert [(row["pid"], row["rank"]) for row in content(trace)["processes"]] == [(90, 0), (31, 1), (20, None)]
        assert column(trace, "steps", "process_id") == [0, 1]

    def test_a_capture_without_pid_is_of_the_pid_that_its_collector_states(self):
        trace = merged(nsys(pid=12), sampler(pid=40), xplane(pid=12))
        assert column(trace, "processes", "pid") == [12, 40]
        assert column(trace, "steps", "process_id") == [0]

    def test_a_capture_without_pid_is_of_the_only_process_that_was_traced(self):
        trace = merged(nsys(pid=12), sampler(pid=11), xplane())
        assert column(trace, "processes", "pid") == [11, 12]
        assert column(trace, "steps", "process_id") == [1]

    def test_a_capture_without_pid_among_several_is_a_process_of_its_own(self):
        two = nsys(
            processes=[(0, "python3", {"pid": 12}), (1, "python3", {"pid": 13})],
            threads=[(0, 0, "python3", {"tid": 12}), (1, 1, "python3", {"tid": 13})],
        )
        assert column(merged(two, xplane()), "processes", "pid") == [12, 13, None]

    def test_the_thread_that_carries_the_steps_is_the_first_of_its_name(self):
        several = nsys(threads=[(0, 0, "python3", {"tid": 12}), (1, 0, "python3", {"tid": 15})])
        trace = merged(several, xplane(pid=12))
        assert [row["tid"] for row in content(trace)["threads"]] == [12, 15, 99]
        assert column(trace, "steps", "thread_id") == [0]

    def test_threads_whose_ids_are_opaque_are_not_joined_by_number(self):
        trace = merged(nsys(), xplane(pid=12, threads=[(0, 0, "other", {"tid": 12}), (1, 0, "tf_data", {"tid": 99})]))
        assert [(row["tid"], row["name"]) for row in content(trace)["threads"]] == [
            (12, "python3"),
            (12, "other"),
            (99, "tf_data"),
        ]

    def test_devices_are_joined_by_their_unique_id_however_it_is_written(self):
        gpus = [(0, "H200", {"ordinal": 3, "uuid": "AB12CD"}), (1, "H200", {"ordinal": 0, "uuid": "ff"})]
        measured = sampler(devices=gpus, samples=[(0, "gpu", 5.0, {"device_id": 0}), (1, "gpu", 6.0, {"device_id": 1})])
        trace = merged(nsys(), measured)
        assert [(row["ordinal"], row["uuid"]) for row in content(trace)["devices"]] == [(0, "GPU-ab12-cd"), (0, "ff")]
        assert column(trace, "samples", "device_id") == [0, 1]
        assert column(trace, "kernels", "device_id") == [0]

    def test_devices_without_unique_id_are_joined_by_number_and_name(self):
        measured = sampler(devices=[(0, "H200", {**GPU, "uuid": "ab"})], samples=[(0, "gpu", 5.0)])
        trace = merged(torch(kernels=[(0, 5, "k")], devices=[(0, "H200", GPU)]), measured)
        assert [(row["name"], row["uuid"]) for row in content(trace)["devices"]] == [("H200", "ab")]

    def test_devices_of_two_ranks_that_see_one_each_are_two(self):
        ranks = [
            torch(
                pid=30 + rank, rank=rank, name=f"raw/torch/rank{rank}", kernels=[(0, 5, "k")], devices=[(0, "H", GPU)]
            )
            for rank in (0, 1)
        ]
        trace = merged(*ranks)
        assert trace.rows("devices") == 2
        assert column(trace, "kernels", "device_id") == [0, 1]

    def test_devices_of_ranks_that_see_one_each_are_those_of_the_machine(self):
        gpus = [(number, "H", {**GPU, "ordinal": number, "uuid": f"GPU-{number}"}) for number in range(3)]
        ranks = [
            torch(
                pid=30 + rank, rank=rank, name=f"raw/torch/rank{rank}", kernels=[(0, 5, "k")], devices=[(0, "H", GPU)]
            )
            for rank in (0, 1)
        ]
        trace = merged(*ranks, sampler(devices=gpus))
        assert [row["uuid"] for row in content(trace)["devices"]] == ["GPU-0", "GPU-1", "GPU-2"]
        assert column(trace, "kernels", "device_id") == [0, 1]

    def test_a_little_work_on_the_device_of_another_rank_makes_no_further_device(self):
        gpus = [(number, "H", {**GPU, "ordinal": number}) for number in range(2)]
        first = torch(pid=30, rank=0, name="raw/torch/rank0", kernels=[(0, 5, "k")] * 2, devices=gpus)
        work = [(0, 5, "k"), (6, 1, "k", {"device_id": 1}), (8, 1, "k", {"device_id": 1})]
        trace = merged(first, torch(pid=31, rank=1, name="raw/torch/rank1", kernels=work, devices=gpus))
        assert trace.rows("devices") == 2
        assert sorted(column(trace, "kernels", "device_id")) == [0, 0, 0, 1, 1]


class TestFacts:
    STATED = RunManifest(
        name="cnn",
        tags={"batch": "64"},
        machine={"cores": 8, "gpus": [{"name": "H200"}], "container": None},
        variables={"OMP_NUM_THREADS": "4"},
        command="python train.py",
        exit=Exit(code=3),
    )

    def test_settings_hold_machine_variables_tags_and_the_end_of_the_run(self):
        trace = merged(torch(), manifest=self.STATED)
        stated = {row["key"]: row["value"] for row in content(trace)["settings"]}
        expected = {"machine.cores": "8", "env.OMP_NUM_THREADS": "4", "tag.batch": "64", "run.exit.code": "3"}
        assert expected.items() <= stated.items()
        assert stated["machine.gpus.0.name"] == "H200"
        assert "machine.container" not in stated

    def test_the_manifests_word_on_the_machine_counts(self):
        measured = sampler(settings=[("machine.cores", "2", {"process_id": None}), ("x", "y", {"process_id": 0})])
        stated = [(row["key"], row["value"]) for row in content(merged(measured, manifest=self.STATED))["settings"]]
        assert [value for key, value in stated if key == "machine.cores"] == ["8"]
        assert ("x", "y") in stated

    def test_the_run_names_every_producer_with_its_version(self):
        recorded = torch()
        recorded.tables["run"] = recorded.tables["run"].set_column(
            2, recorded.tables["run"].schema.field(2), [["2.13"]]
        )
        run = merged(nsys(), recorded).run_facts()
        assert (run["producer"], run["producer_version"]) == ("nsys + torch 2.13", None)
        assert run["framework"] == "PyTorch"

    def test_the_command_is_stored_on_request_only(self):
        assert merged(torch(), manifest=self.STATED).run_facts()["command"] is None
        private = merged(torch(), manifest=self.STATED, keep_private=True)
        assert private.run_facts()["command"] == "python train.py"

    @pytest.mark.parametrize(
        ("status", "end", "message"),
        [
            ("running", {}, "still running"),
            ("failed", {"code": 3}, "failed with exit code 3"),
            ("killed", {"signal": 9}, "killed by signal 9 (SIGKILL)"),
            ("interrupted", {"signal": 2}, "interrupted by signal 2"),
        ],
    )
    def test_a_run_that_did_not_finish_says_so(self, status, end, message):
        messages = notes(merged(torch(), manifest=RunManifest(status=status, exit=Exit(**end))))
        assert message in messages[f"run-{status}"]

    def test_what_is_known_beforehand_is_noted_first(self):
        before = Notes()
        before.add("source-unreadable", "warning", "raw/x could not be read.")
        assert column(merged(torch(), notes=before), "notes", "code")[0] == "source-unreadable"


def test_nothing_cannot_be_merged():
    with pytest.raises(UsageError, match="nothing to merge"):
        merged()


def everything(shift=0):
    return [
        nsys(1_000 + shift),
        torch(1_100 + shift, rank=0),
        torch(1_110 + shift, pid=40, rank=1, name="raw/torch/rank1"),
        xplane(1_050 + shift, pid=12),
        sampler(shift),
    ]


def test_the_order_of_the_sources_does_not_matter():
    first = content(merged(*everything()))
    for order in list(itertools.permutations(range(5)))[::9]:
        sources = everything()
        assert content(merged(*(sources[place] for place in order))) == first


@settings(max_examples=8)
@given(st.integers(min_value=-500, max_value=10**18))
def test_shifting_all_clocks_changes_nothing_but_the_time_of_day(shift):
    first, moved = content(merged(*everything())), content(merged(*everything(shift)))
    assert moved["run"][0].pop("t0_unix_ns") == first["run"][0].pop("t0_unix_ns") + shift
    assert moved == first


@given(st.lists(st.sampled_from(range(5)), min_size=1, max_size=5, unique=True))
def test_every_reference_of_any_subset_of_sources_is_met(chosen):
    sources = everything()
    tables = content(merged(*(sources[place] for place in chosen)))
    for name, rows in tables.items():
        for one in schema.table(name).columns:
            of, _, key = one.joins.partition(".")
            if of in tables and one.name in {"process_id", "thread_id", "device_id", "op_id"}:
                known = {row[key] for row in tables[of]} | {None}
                assert {row[one.name] for row in rows} <= known, (name, one.name)
