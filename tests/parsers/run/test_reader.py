"""Run folders: what lies in them is found, read and merged, however the run ended."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.analyses.builders import tables
from tests.parsers.run.folders import SECOND, resources, run_folder
from tests.support.traces import content, notes
from traceviz.api import ReadOptions, convert, open_trace, report_on
from traceviz.core.errors import DamagedTraceError, UnknownFormatError, UsageError
from traceviz.parsers.base import Match, ReadRequest
from traceviz.parsers.registry import identify, trace_readers
from traceviz.parsers.run.folder import read_run
from traceviz.parsers.run.readers import RunFolderReader
from traceviz.runs.run_tables import write_run_tables
from traceviz.scrub import scrub

pytestmark = pytest.mark.process

TORCH_T0 = 1_795_254_370_157_109_126
"""Start of the sample trace of PyTorch."""


@pytest.fixture
def torch_run(tmp_path: Path, samples: Path) -> Path:
    """A run of 60 s; PyTorch's profiler recorded 2 s of it."""
    began = TORCH_T0 - 10 * SECOND
    stated = {"started_unix_ns": began, "ended_unix_ns": began + 60 * SECOND}
    raw = {"torch": samples / "kineto" / "slow.pt.trace.json.gz", "resources": resources(began, 60)}
    return run_folder(tmp_path / "run", raw, stated)


def rewrite(folder: Path, **changed: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


class TestIdentification:
    def test_the_manifest_tells(self, torch_run):
        assert identify(torch_run).format == "run"

    @pytest.mark.parametrize("text", ["", "[]", "null", '{"kind": "traceviz.trace"}', "[" * 100_000, "\x00"])
    def test_another_manifest_is_none_of_a_run(self, tmp_path, text):
        (tmp_path / "manifest.json").write_text(text)
        assert RunFolderReader(trace_readers).sniff(b"", tmp_path) == Match.NO

    def test_a_log_folder_inside_does_not_make_it_another_format(self, tmp_path, samples):
        folder = run_folder(tmp_path / "run", {})
        shutil.copytree(samples / "xplane" / "keras_tensorboard", folder / "raw" / "tensorflow" / "logs")
        assert identify(folder).format == "run"
        assert open_trace(folder).rows("steps") == 7

    @pytest.mark.parametrize("part", ["manifest.json", "raw", "raw/../raw"])
    def test_its_manifest_and_all_recordings_stand_for_the_run_of_10_steps(self, torch_run, part):
        trace = open_trace(torch_run / part)
        assert (trace.run_facts()["format"], trace.rows("steps"), trace.rows("samples")) == ("run", 10, 240)

    def test_a_newer_run_folder_is_refused(self, torch_run):
        rewrite(torch_run, version=2)
        with pytest.raises(DamagedTraceError, match=r"version 2; this traceviz reads 1 to 1"):
            open_trace(torch_run)


class TestReading:
    def test_all_sources_are_one_trace(self, torch_run, samples):
        trace = open_trace(torch_run)
        assert (trace.rows("steps"), trace.rows("samples"), trace.rows("processes")) == (10, 240, 1)
        assert trace.run_facts()["span_ns"] == 1_974_145_420
        assert "recorded 1.97 s of the 60.0 s" in notes(trace)["profiled-window"]
        alone = open_trace(samples / "kineto" / "slow.pt.trace.json.gz")
        assert trace.arrow("steps").to_pylist() == alone.arrow("steps").to_pylist()

    def test_tables_written_from_raw_are_those_that_are_read_from_it(self, torch_run):
        raw = content(open_trace(torch_run))
        write_run_tables(torch_run)
        shutil.rmtree(torch_run / "raw")
        assert content(open_trace(torch_run)) == raw
        assert content(open_trace(torch_run / "tables")) == raw

    def test_only_the_tables_asked_for_are_given(self, torch_run):
        tables = dict(read_run(torch_run, ReadRequest(frozenset({"steps"})), trace_readers()))
        assert set(tables) == {"run", "devices", "processes", "threads", "steps", "notes"}

    def test_the_owner_of_a_table_does_not_depend_on_what_is_asked_for(self, tmp_path, samples):
        idle = tables(kernels=[], cuda_api=[(0, 1, "cudaFree")], run={"t0_unix_ns": 1_795_251_696_087_803_253})
        raw = {"nsys": idle, "torch": samples / "synthetic" / "torch_healthy.pt.trace.json.gz"}
        folder = run_folder(tmp_path / "run", raw)
        found = dict(read_run(folder, ReadRequest(frozenset({"cuda_api"})), trace_readers()))
        assert found["cuda_api"].num_rows == open_trace(folder).rows("cuda_api") == 180
        assert "kernels" not in found

    def test_ranks_in_files_of_their_own_are_read_together(self, tmp_path, samples):
        ranks = sorted((samples / "kineto" / "two_ranks").iterdir())
        trace = open_trace(run_folder(tmp_path / "run", {"torch": ranks}))
        assert [(row["rank"], row["pid"]) for row in content(trace)["processes"]] == [(0, 35), (1, 36)]
        assert trace.rows("steps") == 12

    def test_a_report_and_its_export_are_one_recording(self, tmp_path, samples):
        forms = [samples / "nsys" / "nvtx_loop.nsys-rep", samples / "nsys" / "nvtx_loop.sqlite"]
        trace = open_trace(run_folder(tmp_path / "run", {"nsys": forms}))
        assert trace.rows("nvtx") == 151
        assert trace.run_facts()["reader"] == "run: nsys sqlite"

    def test_a_damaged_form_is_replaced_by_the_next_and_noted(self, tmp_path, samples):
        folder = run_folder(tmp_path / "run", {"nsys": samples / "nsys" / "nvtx_loop.sqlite"})
        place = folder / "raw" / "nsys"
        whole = (place / "nvtx_loop.sqlite").read_bytes()
        (place / "nvtx_loop.sqlite").write_bytes(whole[: len(whole) // 2])
        trace = {"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 5, "name": "op", "cat": "cpu_op"}]}
        (place / "nvtx_loop.json").write_text(json.dumps({"schemaVersion": 1, **trace}))
        merged = open_trace(folder)
        assert merged.rows("host_ops") == 1
        assert "nvtx_loop.sqlite could not be read: nvtx_loop.sqlite is cut" in notes(merged)["source-unreadable"]

    @pytest.mark.parametrize("name", ["raw/torch/rank3.json", "raw/none"])
    def test_a_source_that_the_manifest_names_and_no_reader_knows_is_noted(self, torch_run, name):
        (torch_run / "raw" / "torch" / "rank3.json").write_text("")
        listed = [{"name": "torch", "sources": ["raw/torch/slow.pt.trace.json.gz", name]}]
        rewrite(torch_run, collectors=listed)
        assert notes(open_trace(torch_run))["source-unreadable"].startswith(f"{name} ")

    def test_the_pid_of_a_capture_without_one_is_that_of_the_status_beside_it(self, tmp_path, samples):
        folder = run_folder(tmp_path / "run", {"tensorflow": samples / "xplane" / "slow_map.xplane.pb.gz"})
        (folder / "raw" / "tensorflow" / "status.json").write_text('{"pid": 4711}')
        assert content(open_trace(folder))["processes"][0]["pid"] == 4711

    def test_processes_have_the_ranks_that_a_launcher_gave_them_also_where_only_nsys_recorded(self, tmp_path, samples):
        nsys = {"nsys": samples / "nsys" / "nvtx_loop.sqlite"}
        (process,) = content(open_trace(run_folder(tmp_path / "alone", nsys)))["processes"]
        assert process["rank"] is None
        folder = run_folder(tmp_path / "run", nsys)
        for name, pid in (("rank5", process["pid"]), ("rank6", 10**9), ("pid7", 7), ("rank8", None)):
            (folder / "raw" / "nvtx" / name).mkdir(parents=True)
            (folder / "raw" / "nvtx" / name / "status.json").write_text(json.dumps({"pid": pid}))
        assert content(open_trace(folder))["processes"] == [{**process, "rank": 5}]

    def test_sources_that_the_manifest_names_are_the_ones_that_are_read(self, torch_run, samples):
        shutil.copy(samples / "kineto" / "repaired.pt.trace.json.gz", torch_run / "raw" / "torch")
        listed = [{"name": "torch", "sources": ["raw/torch/slow.pt.trace.json.gz"]}]
        rewrite(torch_run, collectors=listed)
        assert open_trace(torch_run).rows("steps") == 10

    def test_a_source_outside_the_run_folder_is_not_read(self, torch_run, tmp_path, samples):
        shutil.copy(samples / "kineto" / "repaired.pt.trace.json.gz", tmp_path / "other.json.gz")
        rewrite(torch_run, collectors=[{"name": "torch", "sources": ["../other.json.gz"]}])
        assert "repaired" not in str(notes(open_trace(torch_run)))
        assert open_trace(torch_run).run_facts()["span_ns"] == 1_974_145_420


class TestEndings:
    def test_a_run_that_was_never_finished_is_read_from_what_is_there(self, torch_run):
        rewrite(torch_run, status="running", collectors=[], ended_unix_ns=None)
        assert "still running" in notes(open_trace(torch_run))["run-running"]

    def test_problems_of_collectors_reach_the_notes(self, torch_run):
        problem = {"code": "nvtx-lost", "message": "No range arrived.", "fix": "Install nvtx 0.2.11."}
        rewrite(torch_run, collectors=[{"name": "nvtx", "problems": [problem]}])
        assert notes(open_trace(torch_run))["nvtx-lost"] == "Collector nvtx: No range arrived. Install nvtx 0.2.11."

    def test_what_two_collectors_say_alike_is_said_once(self, torch_run):
        problem = {"code": "not-injected", "message": "No Python.", "fix": "Use one."}
        entries = [{"name": name, "problems": [problem]} for name in ("jax", "torch")]
        rewrite(torch_run, collectors=[*entries, {"name": "nvtx", "problems": [{**problem, "fix": ""}]}])
        messages = [
            note["message"]
            for note in open_trace(torch_run).arrow("notes").to_pylist()
            if "No Python" in note["message"]
        ]
        assert messages == ["Collectors jax, torch: No Python. Use one.", "Collector nvtx: No Python."]

    @pytest.mark.parametrize(
        ("start_ns", "starting"), [(0, ""), (99_999_999, ""), (100_000_000, "starting took 100 ms, ")]
    )
    def test_what_recording_cost_reaches_the_notes_and_a_slow_start_with_it(self, torch_run, start_ns, starting):
        facts = {"start_cost_ns": start_ns, "stop_cost_ns": 1_500_000_000}
        rewrite(torch_run, collectors=[{"name": "torch", "facts": facts}])
        said = notes(open_trace(torch_run))["collector-cost"]
        assert said == f"Collector torch: {starting}stopping and saving took 1.50 s."

    def test_of_four_collectors_those_whose_recordings_cannot_be_read_left_nothing(self, torch_run):
        """TensorFlow was killed while it recorded, JAX's file is cut off; ranges of nvtx are in others' recordings."""
        states = {"torch": "recorded", "tensorflow": "recording", "jax": "recorded", "nvtx": "recorded"}
        rewrite(torch_run, collectors=[{"name": name, "state": state} for name, state in states.items()])
        shown = report_on(torch_run, sections={"run"})
        assert (shown.fact("run", "recorded_by"), shown.fact("run", "without")) == ("nvtx, torch", "jax, tensorflow")
        lost = {code: text for code, text in notes(open_trace(torch_run)).items() if code == "recording-lost"}
        assert lost == {
            "recording-lost": "Collector tensorflow: it had saved nothing yet when the recording was ended."
        }

    def test_a_run_that_recorded_nothing_says_why(self, tmp_path):
        folder = run_folder(tmp_path / "run", {}, {"status": "running"})
        (folder / "raw").mkdir()
        with pytest.raises(UnknownFormatError, match=r"recorded nothing that can be read.*status: running"):
            open_trace(folder)

    @pytest.mark.parametrize("status", ["failed", "killed", "interrupted"])
    def test_a_program_that_crashed_before_anything_was_recorded_is_a_trace_of_0_processes(self, tmp_path, status):
        shown = report_on(run_folder(tmp_path / "run", {}, {"status": status, "duration_ns": 2 * SECOND}))
        assert shown.fact("run", "tag.batch") == "64"
        assert shown.fact("run", "status").startswith(status)
        assert {note.code for note in shown.notes} >= {"nothing-recorded", f"run-{status}"}

    def test_a_recording_that_was_cut_off_with_its_program_is_a_note_and_no_error(self, tmp_path):
        (tmp_path / "x.json").write_text('{"schemaVersion": 1, "traceEvents": [')
        stated = {"status": "killed", "ending": {"outcome": "timed-out", "reason": "timed out after 60 s"}}
        trace = open_trace(run_folder(tmp_path / "run", {"torch": tmp_path / "x.json"}, stated))
        assert "x.json" in notes(trace)["source-unreadable"]
        settings = {row["key"]: row["value"] for row in trace.arrow("settings").to_pylist()}
        assert settings["run.ending.reason"] == "timed out after 60 s"

    def test_what_went_wrong_with_the_run_itself_is_the_reason(self, tmp_path):
        folder = run_folder(tmp_path / "run", {}, {"problems": [{"code": "disk-full", "message": "The disk is full."}]})
        (folder / "raw").mkdir()
        with pytest.raises(UnknownFormatError, match=r"recorded nothing that can be read[^:]*The disk is full\."):
            open_trace(folder)

    def test_a_run_whose_data_was_removed_says_so(self, tmp_path):
        with pytest.raises(UnknownFormatError, match=r"holds neither tables/ nor raw/"):
            open_trace(run_folder(tmp_path / "run", {}))

    def test_the_only_source_that_is_damaged_is_the_error(self, tmp_path):
        (tmp_path / "x.json").write_text('{"schemaVersion": 1, "traceEvents": [')
        with pytest.raises(DamagedTraceError, match=r"x\.json holds no event"):
            open_trace(run_folder(tmp_path / "run", {"torch": tmp_path / "x.json"}))

    @pytest.mark.parametrize(
        "stated",
        [
            {"collectors": "none"},
            {"collectors": [None, {"name": 5}, {"name": "torch", "sources": [1, "\x00"], "facts": [], "problems": 1}]},
            {"machine": [1, {"a": None}], "tags": 5, "exit": "x", "status": 9, "started_unix_ns": "soon", "pid": True},
        ],
    )
    def test_a_manifest_of_unexpected_shape_is_no_obstacle(self, torch_run, stated):
        rewrite(torch_run, **stated)
        assert open_trace(torch_run).rows("steps") == 10

    def test_problems_that_nobody_collected_reach_the_notes_once(self, torch_run):
        line = json.dumps({"code": "hook-failed", "message": "A hook failed.", "fix": "Report it."}) + "\n"
        for place in ("torch", "torch/pid7", "torch/pid8"):
            (torch_run / "raw" / place).mkdir(exist_ok=True)
            (torch_run / "raw" / place / "problems.jsonl").write_text(line + line[:20])
        rewrite(torch_run, status="running", collectors=[{"name": "torch", "state": "recording"}])
        messages = [note["message"] for note in open_trace(torch_run).arrow("notes").to_pylist()]
        assert messages.count("Collector torch: A hook failed. Report it.") == 1
        rewrite(torch_run, status="finished", collectors=[{"name": "torch", "state": "recorded"}])
        assert "hook-failed" not in notes(open_trace(torch_run))


OUTSIDE = "/", "..", "../other", ".", "", "raw", "raw/torch/../../../other"


class TestHostility:
    @pytest.fixture
    def other(self, tmp_path, samples):
        """A recording next to the run folder that does not belong to it."""
        place = tmp_path / "other"
        place.mkdir()
        shutil.copy(samples / "kineto" / "repaired.pt.trace.json.gz", place)
        return place

    @pytest.mark.parametrize("name", OUTSIDE)
    def test_a_collector_whose_name_leads_elsewhere_is_none(self, torch_run, other, name):
        rewrite(torch_run, collectors=[{"name": name, "state": "recording"}])
        shutil.copy(next(other.iterdir()), torch_run / "repaired.pt.trace.json.gz")
        trace = open_trace(torch_run)
        assert {row["source"] for row in content(trace)["windows"]} == {"torch", "resources"}
        assert "source-not-aligned" not in notes(trace)
        assert trace.rows("steps") == 10

    @pytest.mark.parametrize("source", [*OUTSIDE, "raw/resources", "raw/torch/\x00", "raw/torch/\ud800"])
    def test_a_source_that_is_not_the_collectors_own_is_noted_and_not_read(self, torch_run, other, source):
        absolute = str(other / "repaired.pt.trace.json.gz")
        listed = [{"name": "torch", "sources": [source, absolute, "raw/torch/slow.pt.trace.json.gz"]}]
        rewrite(torch_run, collectors=listed)
        trace = open_trace(torch_run)
        assert (trace.rows("steps"), trace.rows("samples")) == (10, 240)
        assert "source-unreadable" in notes(trace)

    def test_a_link_that_leads_out_of_the_run_is_not_followed(self, torch_run, other):
        (torch_run / "raw" / "jax").symlink_to(other)
        (torch_run / "raw" / "torch" / "second.json.gz").symlink_to(next(other.iterdir()))
        (torch_run / "raw" / "circle").symlink_to(torch_run / "raw" / "circle")
        assert open_trace(torch_run).rows("steps") == 10

    def test_a_pipe_in_the_run_keeps_nobody_waiting(self, torch_run):
        os.mkfifo(torch_run / "raw" / "torch" / "pipe.json")
        os.mkfifo(torch_run / "raw" / "torch" / "status.json")
        assert open_trace(torch_run).rows("steps") == 10
        (torch_run / "manifest.json").unlink()
        os.mkfifo(torch_run / "manifest.json")
        assert RunFolderReader(trace_readers).sniff(b"", torch_run) == Match.NO

    @pytest.mark.parametrize("pid", [-1, 1 << 31, True, "7"])
    def test_what_cannot_be_a_pid_is_none(self, tmp_path, samples, pid):
        folder = run_folder(tmp_path / "run", {"tensorflow": samples / "xplane" / "slow_map.xplane.pb.gz"})
        (folder / "raw" / "tensorflow" / "status.json").write_text(json.dumps({"pid": pid}))
        assert content(open_trace(folder))["processes"][0]["pid"] is None

    def test_a_manifest_may_say_anything_about_a_run_without_losing_it(self, tmp_path):
        keys = ("name", "tags", "status", "exit", "pid", "machine", "versions", "settings", "window")
        stated = {"started_unix_ns": TORCH_T0, "ended_unix_ns": TORCH_T0 + SECOND}
        recorded = tables(steps=[(at, 1, at) for at in range(10)], run={"t0_unix_ns": TORCH_T0})
        folder = run_folder(tmp_path / "run", {"torch": recorded}, stated)
        deep: object = 1
        for _ in range(400):
            deep = {"k": deep}
        odd = [
            10**30,
            -1,
            float("nan"),
            float("inf"),
            "\ud800",
            "\x00",
            [],
            [[]],
            {"\ud800": "\udfff"},
            deep,
            "x" * 10**5,
        ]
        for value in odd:
            cost = {"stop_cost_ns": value}
            collectors = [{"name": "torch", "state": "recorded", "facts": cost}]
            rewrite(folder, **dict.fromkeys(keys, value), collectors=collectors)
            assert open_trace(folder).rows("steps") == 10
        assert len(odd) == 11

    def test_a_manifest_that_is_cut_off_is_named_as_the_fault(self, torch_run):
        path = torch_run / "manifest.json"
        path.write_bytes(path.read_bytes()[:40])
        with pytest.raises(UnknownFormatError, match=r"manifest\.json is damaged"):
            open_trace(torch_run)

    def test_a_manifest_of_17_mb_is_none(self, torch_run):
        rewrite(torch_run, name="x" * (17 << 20))
        assert RunFolderReader(trace_readers).sniff(b"", torch_run) == Match.NO

    def test_a_rank_of_more_digits_than_ranks_have_is_none(self, tmp_path, samples):
        folder = run_folder(tmp_path / "run", {"torch": sorted((samples / "kineto" / "two_ranks").iterdir())})
        for number, path in enumerate(sorted((folder / "raw" / "torch").iterdir())):
            path.rename(path.with_name(f"rank{10**12 + number}.json" + "".join(path.suffixes[-1:])))
        assert [row["rank"] for row in content(open_trace(folder))["processes"]] == [0, 1]  # as stated in the files


class TestUse:
    def test_a_report_is_about_the_profiled_part_and_shows_all_samples(self, torch_run):
        report = report_on(torch_run)
        facts = {fact.key: fact.value for fact in report.section("capture").blocks[0].facts}
        assert facts["span_ns"] == 1_974_145_420
        alone = report_on(torch_run / "raw" / "torch" / "slow.pt.trace.json.gz")
        assert report.verdict == alone.verdict
        assert report.verdict.code == "highly-input-bound"

    def test_a_run_can_be_converted(self, torch_run, tmp_path):
        folder = convert(torch_run, tmp_path / "out")
        assert content(open_trace(folder)) == content(open_trace(torch_run))
        assert json.loads((folder / "manifest.json").read_text())["format"] == "run"

    def test_the_tables_of_a_run_can_be_scrubbed(self, torch_run, tmp_path):
        write_run_tables(torch_run)
        result = scrub(torch_run, tmp_path / "clean")
        assert dict(result.removed)["private properties"] >= 1
        kept = content(open_trace(tmp_path / "clean"))
        assert {row["value"] for row in kept["settings"] if row["key"] == "run.name"} == {"cnn"}
        assert [row["value"] for row in kept["settings"] if row["key"] == "run.status"] == ["finished"]
        assert len(kept["samples"]) == 240

    def test_a_run_without_tables_gets_them_when_it_is_scrubbed(self, torch_run, tmp_path):
        scrub(torch_run, tmp_path / "clean")
        assert len(content(open_trace(tmp_path / "clean" / "tables"))["samples"]) == 240
        assert not (torch_run / "tables").exists()

    def test_a_run_is_no_folder_of_runs(self, torch_run):
        with pytest.raises(UsageError, match="is one run"):
            open_trace(torch_run, read=ReadOptions(run="x"))


def test_what_became_known_of_the_end_after_the_tables_were_written_is_in_the_report(torch_run):
    rewrite(torch_run, status="failed", exit={"code": 1, "signal": None})
    write_run_tables(torch_run)
    assert notes(open_trace(torch_run))["run-failed"].startswith("The program failed with exit code 1; ")
    ending = {"outcome": "failed", "reason": "exit code 1: ValueError", "last_lines": ["ValueError: of a user"]}
    rewrite(torch_run, ending=ending)
    trace = open_trace(torch_run)
    said = notes(trace)["run-failed"]
    assert said.startswith("The program failed with exit code 1 (ValueError); ")
    assert said.endswith("What it wrote is in output.log of the run.")
    stated = {row["key"]: row["value"] for row in trace.arrow("settings").to_pylist()}
    assert (stated["run.ending.outcome"], stated["run.ending.reason"]) == ("failed", "exit code 1: ValueError")
    assert "of a user" not in str(content(trace))
