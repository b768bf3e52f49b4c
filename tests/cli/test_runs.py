"""``traceviz runs``, and ``traceviz report`` without a trace: which runs there are, and which is the newest."""

import csv
import json

import pytest

from tests.analyses.builders import tables
from tests.support.command import run as traceviz
from traceviz.collectors.collect import Outcome
from traceviz.collectors.run.tables import Tables
from traceviz.parsers.run.manifest import Judgement
from traceviz.runs.recorded_runs import newest_run, save_verdict
from traceviz.trace.tables import save

SECOND = 10**9
START = 1_700_000_000 * SECOND


def made_run(folder, called, second=0, **stated):
    """Return a run folder with a manifest only, started ``second`` seconds after the first."""
    plain = {
        "kind": "traceviz.run",
        "version": 1,
        "name": called.partition("-")[0],
        "command": f"python {called.partition('-')[0]}.py --batch-size {second}",
        "left_out": ["command line"],
        "status": "finished",
        "exit": {"code": 0, "signal": None},
        "started_unix_ns": START + second * SECOND,
        "duration_ns": 12_300_000_000,
        "tags": {"batch": str(second)},
        "verdict": {"code": "highly-input-bound", "sentence": f"Input: {second} % of the time.", "cause": "input"},
    }
    (folder / called).mkdir(parents=True)
    (folder / called / "manifest.json").write_text(json.dumps(plain | stated))
    return folder / called


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """3 runs; the one with the middle name is the newest; and files that are no runs."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "traceviz-runs"
    made_run(folder, "train-1", 10)
    made_run(folder, "train-2", 30)
    made_run(folder, "train-3", 20, status="killed", exit={"code": 137, "signal": 9}, verdict={}, tags={})
    (folder / "notes.txt").write_text("mine")
    (folder / "empty").mkdir()
    return folder


def rows(*arguments):
    done = traceviz("runs", "--format", "csv", *arguments)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(done.stdout.splitlines()))


def test_3_runs_are_listed_the_newest_first_with_what_tells_them_apart(runs):
    listed = rows()
    assert [row["run"] for row in listed] == ["train-2", "train-3", "train-1"]
    first = listed[0]
    told = (first["command"], first["tags"], first["ended"])
    assert told == ("python train.py --batch-size 30", "batch=30", "finished")
    assert (first["duration_ns"], first["verdict"]) == ("12300000000", "highly-input-bound")
    assert first["sentence"] == "Input: 30 % of the time."
    assert (listed[1]["ended"], listed[1]["sentence"]) == ("killed (9)", "")


def test_a_page_shows_the_verdict_of_each_and_names_the_command_for_the_newest(runs):
    page = traceviz("runs").stdout
    assert "3 runs; traceviz report traceviz-runs/train-2 says where" in page
    assert "train-1 · python train.py --batch-size 10 · Input: 10 % of the time." in page
    assert "train-3 · python train.py --batch-size 20 · No verdict was made." in page
    assert max(map(len, traceviz("runs", "--width", "80").stdout.splitlines())) <= 80


def test_a_tag_and_a_limit_leave_1_run(runs):
    assert [row["run"] for row in rows("--tag", "batch=10")] == ["train-1"]
    assert [row["run"] for row in rows("--limit", "1")] == ["train-2"]
    assert "No run has these tags." in traceviz("runs", "--tag", "batch=11").stdout


def test_of_25_runs_a_page_lists_20_and_a_spreadsheet_all(runs):
    for number in range(22):
        made_run(runs, f"more-{number}", 100 + number)
    page = traceviz("runs").stdout
    assert "25 runs, the newest 20 listed" in page
    assert (page.count("finished"), page.count(" of the time.")) == (20, 10)
    assert len(rows()) == 25


def test_manifests_of_strangers_are_listed_or_counted_and_break_nothing(runs):
    made_run(runs, "odd-1", 40, tags=[1], command=7, exit="?", verdict="fine", started_unix_ns="x", duration_ns=None)
    made_run(runs, "odd-2", 50, version=99)
    made_run(runs, "odd-3", 60, name="\x1b[31mred", status="running", tags={"a": {"b": "\x1b]0;x\x07"}})
    (runs / "odd-4").mkdir()
    (runs / "odd-4/manifest.json").write_text("[" * 5000)
    done = traceviz("runs")
    assert (done.returncode, "\x1b" in done.stdout) == (0, False)
    assert "The manifest of 1 run cannot be read: odd-2." in done.stdout
    assert {row["run"]: row["ended"] for row in rows()}["odd-3"] == "running?"
    assert len(rows()) == 5


def test_without_a_folder_or_a_run_both_commands_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in ("runs", "report"):
        done = traceviz(command)
        assert (done.returncode, "traceviz collect -- python train.py" in done.stderr) == (2, True)
    made_run(tmp_path / "traceviz-runs", "new", version=99)
    assert "1 run there cannot be read" in traceviz("report").stderr


def test_report_without_a_trace_takes_the_newest_run_and_says_so_on_stderr(runs, monkeypatch):
    asked = []
    monkeypatch.setattr("traceviz.api.report_on", lambda *paths, **_: asked.append(paths) or 1 / 0)
    done = traceviz("report")
    assert [str(path) for path in asked[0]] == ["traceviz-runs/train-2"]
    assert "traceviz: the newest run: traceviz-runs/train-2" in done.stderr
    assert newest_run(runs).name == "train-2"


def test_what_a_verdict_says_is_not_said_again_as_a_problem(tmp_path, monkeypatch):
    from tests.collectors.run import driven
    from traceviz.collectors import collect as recording

    lines = ("It waits. fake cannot be started.",)
    monkeypatch.chdir(tmp_path)
    seen = []
    monkeypatch.setattr(recording, "Outcome", lambda *facts: seen.append(Outcome(*facts)) or seen[0])
    monkeypatch.setattr(driven, "Tables", lambda: Tables({"run": 1}, lines, {"cause": "blocked"}))
    driven.collect_here(monkeypatch, "-o", "run", "--", "true")
    assert (seen[0].verdict, seen[0].problems) == (lines, ())
    stated = json.loads((tmp_path / "run/manifest.json").read_text())
    assert stated["verdict"] == {"cause": "blocked"}


@pytest.fixture
def unjudged(tmp_path, monkeypatch):
    """A run with tables, and no verdict: it was recorded with --no-report."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEVIZ_CACHE", str(tmp_path / "cache"))
    source = {"name": "torch", "state": "recorded", "sources": ["raw/torch/tables"]}
    run = made_run(tmp_path / "traceviz-runs", "train-1", verdict={}, collectors=[source])
    (run / "raw" / "torch").mkdir(parents=True)
    steps = [(at * 1_000_000, 1_000_000, at) for at in range(20)]
    save(tables(steps=steps, host_ops=[(start, 900_000, "matmul") for start, *_ in steps]), run / "raw/torch/tables")
    return run


def test_the_verdict_of_a_report_that_was_made_later_is_listed(unjudged, tmp_path):
    before = (unjudged / "manifest.json").read_bytes()
    assert rows()[0]["sentence"] == ""
    assert traceviz("report", unjudged, "--section", "capture").returncode == 0
    assert rows()[0]["sentence"] == ""  # that was no report on the whole run
    report = traceviz("report", unjudged, "--format", "json")
    verdict = json.loads(report.stdout)["verdict"]
    assert (rows()[0]["verdict"], rows()[0]["sentence"]) == (verdict["code"], verdict["sentence"])
    assert verdict["sentence"][:20] in traceviz("runs").stdout
    assert (unjudged / "manifest.json").read_bytes() == before
    (kept,) = (tmp_path / "cache" / "verdicts").glob("*/verdict.json")
    assert json.loads(kept.read_text())["sentence"] == verdict["sentence"]


def test_a_later_verdict_takes_the_place_of_an_earlier_one(unjudged):
    for sentence in ("First.", "Second."):
        save_verdict(unjudged, Judgement("code", sentence))
        assert rows()[0]["sentence"] == sentence


def test_without_a_cache_the_verdict_is_that_of_the_end_of_the_run(unjudged, monkeypatch):
    monkeypatch.setenv("TRACEVIZ_CACHE", "0")
    assert traceviz("report", unjudged).returncode == 0
    assert rows()[0]["sentence"] == ""


def test_another_run_of_the_same_name_does_not_take_over_the_verdict(unjudged):
    save_verdict(unjudged, Judgement("code", "Of the first."))
    document = json.loads((unjudged / "manifest.json").read_text())
    (unjudged / "manifest.json").write_text(json.dumps({**document, "pid": 4711}))
    assert rows()[0]["sentence"] == ""
