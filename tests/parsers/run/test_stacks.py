"""Files of Python stacks: their contents, any truncation or damage, and joining a run's other recordings."""

import json

import pytest

from tests.parsers.run.folders import literal, no_manifest, run_folder
from tests.parsers.run.stack_files import METRICS, PHASE, SAMPLES, START, WHOLE, described, process, sample, write
from tests.support.traces import codes
from traceviz.analyses.derived.view import TraceView
from traceviz.api import open_trace
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.run.identity import tracer_ids
from traceviz.parsers.run.manifest import RunManifest
from traceviz.parsers.run.merge import merge_sources
from traceviz.parsers.run.readers import StacksReader
from traceviz.parsers.run.sources import Source
from traceviz.trace.tables import TraceTables


def read(tmp_path, *lines, **options):
    path = write(tmp_path / "stacks.jsonl", lines or WHOLE)
    return TraceTables(dict(StacksReader().tables(path, ReadRequest(**options))))


def called(tables):
    """Return each row of ``stacks``: the functions from the outermost on, and its time."""
    frames = {row["stack_id"]: row for row in tables.arrow("stack_frames").to_pylist()}

    def chain(number):
        return () if number is None else (*chain(frames[number]["parent_id"]), frames[number]["function"])

    return [(chain(row["stack_id"]), row["dur_ns"]) for row in tables.arrow("stacks").to_pylist()]


class TestReading:
    def test_samples_have_their_stacks_and_a_clock_that_begins_with_the_process(self, tmp_path):
        tables = read(tmp_path)
        assert called(tables) == [(("main", "load", "decode"), 100), (("main", "save"), 500)]
        assert tables.arrow("stacks").to_pylist()[1] == {
            "start_ns": 1_100,
            "dur_ns": 500,
            "process_id": 0,
            "thread_id": 0,
            "stack_id": 2,
            "samples": 5,
            "cpu_ns": 0,
            "state": "waiting",
        }
        facts = tables.run_facts()
        assert (facts["format"], facts["t0_unix_ns"], facts["span_ns"]) == ("stacks", START + 1_000, 2_000)
        assert codes(tables) == []

    @pytest.mark.parametrize(
        ("source", "framework"),
        [("torch_optimizer", "PyTorch"), ("paddle_fit", "PaddlePaddle"), ("mxnet_loader", "MXNet"), ("keras", None)],
    )
    def test_the_hooks_that_count_steps_name_the_framework(self, tmp_path, source, framework):
        step = ["phase", "step", source, 0, 2_100, 450, 12]
        assert read(tmp_path, *WHOLE, step).run_facts()["framework"] == framework

    def test_frames_say_function_file_line_and_whose_they_are(self, tmp_path):
        frames = read(tmp_path).arrow("stack_frames").to_pylist()
        assert frames[3] == {
            "stack_id": 3,
            "parent_id": 1,
            "function": "decode",
            "file": "train.py",
            "line": 12,
            "origin": "program",
        }

    def test_phases_are_the_process_and_what_its_hooks_noted(self, tmp_path):
        phases = read(tmp_path, process(role="worker"), *WHOLE[1:]).arrow("phases").to_pylist()
        assert [(row["start_ns"], row["dur_ns"], row["kind"], row["name"], row["thread_id"]) for row in phases] == [
            (0, 2_000, "program", "worker", None),
            (1_100, 450, "saving", "torch.save", 0),
        ]

    def test_what_sampling_cost_is_a_share_of_the_time(self, tmp_path):
        settings = {row["key"]: row["value"] for row in read(tmp_path).arrow("settings").to_pylist()}
        assert settings == {
            "process.role": "program",
            "process.parent_pid": "1",
            "stacks.cost": "0.01000",
            "stacks.rate_hz": "100",
        }

    def test_a_process_says_how_many_samples_its_steps_take_and_that_it_learns(self, tmp_path):
        said = [process(batch=32), *WHOLE[1:], process(batch=64, gradients=1)]
        settings = {row["key"]: row["value"] for row in read(tmp_path, *said).arrow("settings").to_pylist()}
        assert (settings["process.batch"], settings["process.gradients"]) == ("64", "1")

    def test_only_the_tables_that_are_wanted_are_given(self, tmp_path):
        assert set(read(tmp_path, tables=frozenset({"phases"}))) - {"run", "devices", "processes", "threads"} == {
            "notes",
            "phases",
        }

    def test_equal_stacks_under_two_numbers_are_one(self, tmp_path):
        again = [["stack", 8, 0, 1], ["stack", 9, 8, 2], ["samples", [sample(2_700, 10, 9)]]]
        tables = read(tmp_path, *WHOLE, *again)
        assert (tables.rows("stack_frames"), called(tables)[2]) == (4, (("main", "load", "decode"), 10))

    def test_the_last_word_on_a_process_a_thread_and_the_end_counts(self, tmp_path):
        later = [process(role="worker"), ["thread", 0, 12, "loader"], ["cost", {"cpu_ns": 40}], ["end", 3_500]]
        tables = read(tmp_path, *WHOLE, *later)
        assert tables.arrow("phases")["name"].to_pylist()[0] == "worker"
        assert tables.arrow("threads")["name"].to_pylist() == ["loader"]
        assert (tables.run_facts()["span_ns"], tables.arrow("settings")["value"].to_pylist()[2]) == (2_500, "0.01600")


class TestDamage:
    def test_each_line_may_be_the_last_and_cut_anywhere(self, tmp_path):
        text = "".join(f"{json.dumps(line)}\n" for line in WHOLE)
        whole = read(tmp_path)
        rows = []
        for end in range(len(json.dumps(WHOLE[0])), len(text), 11):
            (tmp_path / "stacks.jsonl").write_text(text[:end])
            tables = open_trace(tmp_path / "stacks.jsonl")
            rows.append(tables.rows("stacks"))
            assert tables.rows("stack_frames") <= whole.rows("stack_frames")
        assert (rows[0], rows[-1], sorted(rows)) == (0, 2, rows)

    @pytest.mark.parametrize(
        ("lines", "unsampled", "noted"),
        [
            (WHOLE, [], []),
            ([*WHOLE[:-1], ["stopped", 2_700, "OSError: gone"], WHOLE[-1]], [(1_700, 300)], []),
            ([*WHOLE[:-1], ["stopped", 2_700, "OSError: gone"]], [(1_600, 0)], []),
            (WHOLE[:-1], [(1_600, 0)], ["stacks-not-ended"]),
            ([process(role="worker"), *WHOLE[1:-1]], [], []),  # workers are ended by signals
            ([*WHOLE[:-1], ["stopped", 9_000, ""], WHOLE[-1]], [(2_000, 0)], []),
        ],
    )
    def test_what_was_not_sampled_to_the_end_says_from_when_on(self, tmp_path, lines, unsampled, noted):
        tables = read(tmp_path, *lines)
        phases = [row for row in tables.arrow("phases").to_pylist() if row["kind"] == "unsampled"]
        assert [(row["start_ns"], row["dur_ns"]) for row in phases] == unsampled
        assert codes(tables) == noted

    def test_a_program_that_was_killed_lacks_its_end_and_a_note_says_so(self, tmp_path):
        assert codes(read(tmp_path, *WHOLE[:-1])) == ["stacks-not-ended"]
        assert codes(read(tmp_path, process(role="worker"), *WHOLE[1:-1])) == []  # killed as a matter of course

    def test_samples_of_what_no_line_describes_are_left_out_and_counted(self, tmp_path):
        lost = ["samples", [sample(2_700, 1, 77), sample(2_700, 1, 0, thread=5), sample(2_700, 9, 0)]]
        tables = read(tmp_path, *WHOLE, lost)
        assert called(tables)[2:] == [(("main",), 9)]
        assert [(row["code"], row["count"]) for row in tables.arrow("notes").to_pylist()] == [("stacks-unknown", 2)]

    @pytest.mark.parametrize(
        "row",
        [
            [2_700, 1, 0, 0, 1, None],
            [2_700.5, 1, 0, 0, 1, None, None],
            [2**70, 1, 0, 0, 1, None, None],
            [2_700, 1, -1, 0, 1, None, None],
            [2_700, 1, 0, 0, 2**40, None, None],
            [2_700, 1, 0, 0, 1, None, 3],
            "samples",
            None,
        ],
    )
    def test_one_damaged_sample_does_not_take_the_others_of_its_line(self, tmp_path, row):
        assert called(read(tmp_path, *WHOLE, ["samples", [row, sample(2_700, 9, 0)]]))[2:] == [(("main",), 9)]

    @pytest.mark.parametrize(
        "line",
        [
            "{}",
            "[]",
            '["other", 1]',
            '["frame", 0]',
            '["stack", 5, 4, 99]',
            '["samples", {}]',
            "[" * 100_000,
            "\0",
            '"x',
        ],
    )
    def test_lines_that_are_none_are_left_out_and_counted(self, tmp_path, line):
        tables = read(tmp_path, *WHOLE[:5], line, *WHOLE[5:])
        assert (tables.rows("stacks"), codes(tables)) == (2, ["stacks-unreadable"])

    def test_names_that_are_no_unicode_are_kept_as_far_as_they_are(self, tmp_path):
        lines = [*WHOLE, ["frame", 9, "f\udcff", "a\udcff.py", 1, "program"], ["stack", 9, None, 9]]
        assert read(tmp_path, *lines).arrow("stack_frames").to_pylist()[1]["file"] == "a\ufffd.py"

    def test_a_stack_without_end_keeps_its_inner_frames(self, tmp_path):
        deep = {str(number): str(number - 1) if number else None for number in range(2_500)}
        tables = read(tmp_path, process(), *described(deep), ["samples", [sample(2_000, 1, 2_499)]], ["end", 3_000])
        ((chain, _),) = called(tables)
        assert (len(chain), chain[-1]) == (500, "2499")

    def test_one_sample_at_an_impossible_time_does_not_stretch_the_others(self, tmp_path):
        tables = read(tmp_path, *WHOLE, ["samples", [sample(2**61, 1, 0), sample(2_900, 2**61, 0)]])
        assert (tables.run_facts()["span_ns"], tables.rows("stacks")) == (2_000, 3)
        assert tables.arrow("stacks")["dur_ns"].to_pylist()[2] is None
        assert sorted(codes(tables)) == ["durations-out-of-range", "times-out-of-range"]

    def test_a_file_that_describes_nothing_is_damaged(self, tmp_path):
        with pytest.raises(DamagedTraceError, match="No line of it describes samples"):
            read(tmp_path, '["process", {}')

    def test_a_clock_that_was_set_keeps_the_old_time(self, tmp_path):
        tables = read(tmp_path, *WHOLE, ["clock", 2_900, START + 2_900 + 10**9])
        assert (tables.run_facts()["t0_unix_ns"], codes(tables)) == (START + 1_000, ["clock-set"])


# In a run -------------------------------------------------------------------------------------------------------------

WORKER = [process(40, role="worker", name="loader"), *described(tid=40), SAMPLES, ["end", 2_900]]


@pytest.fixture
def stacks(tmp_path):
    def made(lines=WHOLE, pid=12):
        path = write(tmp_path / "raw" / "stacks" / str(pid) / "stacks.jsonl", lines)
        return Source("stacks", f"raw/stacks/{pid}", dict(StacksReader().tables(path, ReadRequest())), pid)

    return made


def profiled(t0=START + 1_500, pid=12, **given):
    """Return a profiler's events of the main thread, from the middle of the first sample on."""
    facts = {
        "host_ops": [(0, 30, "aten::add", "op")],
        "steps": [(0, 30, 3)],
        "processes": [(0, None, {"pid": pid})],
        "threads": [(0, 0, "python3", {"tid": pid})],
        **given,
    }
    return literal("torch", t0, run={"format": "kineto"}, **facts)


def merged(*sources, manifest=None):
    return TraceTables(dict(merge_sources(sources, manifest or no_manifest())))


class TestMetrics:
    def test_each_has_its_value_its_place_in_the_training_and_who_told_of_it(self, tmp_path):
        strange = ["metric", "f1", 0.25, -1, None, 2_250, "a stranger"]
        rows = read(tmp_path, *WHOLE[:-1], *METRICS, strange, WHOLE[-1]).arrow("metrics").to_pylist()
        assert [tuple(row.values())[1:] for row in rows] == [
            (0, "loss", 0.5, 40, 0, "keras"),
            (0, "f1", 0.25, -1, None, "program"),
            (0, "val_accuracy", 0.75, None, None, "program"),
            (0, "loss", None, 80, 1, "keras"),
        ]
        assert [row["start_ns"] for row in rows] == [1_200, 1_250, 1_300, 1_400]

    def test_a_program_that_states_none_has_no_such_table(self, tmp_path):
        assert ("metrics" in read(tmp_path), read(tmp_path).rows("phases")) == (False, 2)

    def test_one_at_an_impossible_time_is_left_out_and_noted(self, tmp_path):
        tables = read(tmp_path, *WHOLE[:-1], METRICS[0], ["metric", "loss", 0.1, 1, 1, 2**61, "keras"], WHOLE[-1])
        assert (tables.arrow("metrics")["value"].to_pylist(), codes(tables)) == ([0.5], ["times-out-of-range"])

    def test_figures_alone_are_no_recording_of_a_process(self, tmp_path):
        tables = read(tmp_path, process(), ["clock", 0, START], *METRICS, ["end", 2_400])
        assert (tables.rows("metrics"), [name for name in ("phases", "stacks", "settings") if name in tables]) == (
            3,
            [],
        )

    def test_they_join_what_was_profiled_on_its_clock_whoever_told_of_them(self, stacks):
        alone = stacks([process(), ["clock", 0, START], ["metric", "loss", 0.25, 9, None, 2_350, "tensorboard"]])
        trace = merged(profiled(), stacks([*WHOLE[:-1], *METRICS, WHOLE[-1]]), alone)
        rows = trace.arrow("metrics").to_pylist()
        assert [(row["start_ns"], row["source"]) for row in rows] == [
            (700, "keras"),
            (800, "program"),
            (850, "tensorboard"),
            (900, "keras"),
        ]
        assert {row["process_id"] for row in rows} == {trace.arrow("phases")["process_id"].to_pylist()[0]}


class TestRun:
    def test_stacks_lie_before_and_after_what_was_profiled(self, stacks):
        trace = merged(profiled(), stacks())
        assert (trace.run_facts()["t0_unix_ns"], trace.run_facts()["span_ns"]) == (START + 1_500, 30)
        assert trace.arrow("stacks")["start_ns"].to_pylist() == [500, 600]
        assert trace.arrow("phases")["start_ns"].to_pylist() == [-500, 600]

    def test_stacks_of_several_processes_share_their_frames(self, stacks):
        trace = merged(profiled(), stacks(), stacks(WORKER, 40))
        assert (trace.rows("stack_frames"), trace.rows("stacks")) == (4, 4)
        assert [chain[-1] for chain, _ in called(trace)] == ["decode", "decode", "save", "save"]
        assert trace.arrow("stacks")["process_id"].to_pylist() == [0, 1, 0, 1]

    def test_the_program_lasts_from_its_start_to_its_end(self, stacks):
        ran = RunManifest(pid=12, started_unix_ns=START + 500, ended_unix_ns=START + 4_000)
        phases = merged(profiled(), stacks(), stacks(WORKER, 40), manifest=ran).arrow("phases").to_pylist()
        assert [(row["start_ns"], row["dur_ns"], row["name"]) for row in phases if row["kind"] == "program"] == [
            (-1_000, 3_500, "program"),
            (-500, 1_900, "worker"),
        ]

    def test_a_program_that_becomes_another_begins_with_the_first_and_ends_with_the_second(self, stacks):
        ran = RunManifest(pid=12, started_unix_ns=START + 500, ended_unix_ns=START + 9_000)
        second = [process(started_unix_ns=START + 5_000), *described(), ["samples", [sample(6_000, 10, 0)]]]
        trace = merged(stacks(), stacks(second), manifest=ran)
        phases = trace.arrow("phases").to_pylist()
        assert [(row["start_ns"], row["dur_ns"]) for row in phases if row["kind"] == "program"] == [
            (-500, 2_500),
            (4_000, 4_000),
        ]

    def test_a_thread_has_the_name_that_the_program_gave_it(self, stacks):
        trace = merged(profiled(), stacks())
        assert [(row["tid"], row["name"]) for row in trace.arrow("threads").to_pylist()] == [(12, "MainThread")]

    def test_threads_of_xplane_are_found_by_what_its_profiler_makes_of_pythons_ids(self, stacks):
        ident = WHOLE[2][5]
        (own,) = {number for number in tracer_ids(ident) if number > 2**32} - {ident}
        space = literal(
            "jax",
            START + 1_500,
            run={"format": "xplane"},
            pid=12,
            host_ops=[(0, 30, "PjitFunction(f)", "op")],
            processes=[(0, None, {"pid": None})],
            threads=[(0, 0, "a name of its own", {"tid": own})],
        )
        threads = merged(space, stacks()).arrow("threads").to_pylist()
        assert [(row["tid"], row["name"]) for row in threads] == [(12, "MainThread")]

    def test_py_spy_replaces_the_samples_of_the_sampler_in_the_program_and_not_its_phases(self, tmp_path, stacks):
        lines = [
            process(name=None, started_unix_ns=None),
            ["clock", 0, START],
            ["thread", 0, None, None, False, WHOLE[2][5]],
            ["frame", 0, "fsync", "libc.so.6", None, "native"],
            ["stack", 0, None, 0],
            ["samples", [sample(2_100, 400, 0, n=4)]],
            ["end", 2_600],
        ]
        path = write(tmp_path / "py-spy" / "stacks.jsonl", lines)
        spied = Source("py-spy", "raw/py-spy/12", dict(StacksReader().tables(path, ReadRequest())), 12)
        trace = merged(profiled(), stacks(), spied)
        assert called(trace) == [(("fsync",), 400)]
        assert trace.arrow("stacks").select(["start_ns", "thread_id", "samples"]).to_pylist() == [
            {"start_ns": 600, "thread_id": 0, "samples": 4}
        ]
        assert trace.arrow("phases")["kind"].to_pylist() == ["program", "saving"]
        assert [(row["tid"], row["name"]) for row in trace.arrow("threads").to_pylist()] == [(12, "MainThread")]

    def test_ids_are_hashed_as_the_libraries_do(self):
        """Two threads of a TensorFlow 2.20 program: ``threading.get_ident()`` and the id of their line."""
        assert 5671544569322384864 in tracer_ids(139790167620480)
        assert 808160834317415717 in tracer_ids(139788932871872)

    def test_a_loader_is_no_rank(self, stacks):
        assert TraceView(merged(profiled(), stacks(), stacks(WORKER, 40))).ranks == (0,)
        assert TraceView(merged(stacks(), stacks(WORKER, 40))).ranks == (0,)

    def test_windows_are_not_told_for_each_worker(self, stacks):
        trace = merged(profiled(), stacks(), *(stacks([process(pid), *WORKER[1:]], pid) for pid in range(40, 50)))
        rows = {row["recorded"]: row for row in trace.arrow("windows").to_pylist() if row["source"] == "stacks"}
        assert {name: (row["start_ns"], row["dur_ns"]) for name, row in rows.items()} == dict.fromkeys(
            ("stack_frames", "stacks", "phases"), (-500, 2_000)
        )

    def test_a_run_folder_is_read_with_its_stacks(self, tmp_path):
        folder = run_folder(tmp_path, {}, {"collectors": [{"name": "stacks", "state": "recorded"}]})
        write(folder / "raw" / "stacks" / "12" / "stacks.jsonl", [*WHOLE[:-1], PHASE])
        trace = open_trace(folder)
        assert (trace.rows("stacks"), trace.rows("phases"), codes(trace)) == (2, 4, ["tables-from", "stacks-not-ended"])
