"""Event files of a program: which belong to the run, their contents in the trace, and messages for damaged ones."""

import json
import os
import sys
import time
from importlib import import_module

import pytest

from tests.collectors.inject.bench import HOOKS
from tests.untrusted.event_records import event, simple
from traceviz.api import open_trace
from traceviz.collectors.base import Plan
from traceviz.collectors.frameworks import event_files
from traceviz.collectors.frameworks.event_files import harvest_events


@pytest.fixture
def plan(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def made(*told, **options):
        run = tmp_path / "run"
        (run / "raw" / "stacks").mkdir(parents=True)
        (run / "inject.json").write_text("{}")
        if told:
            lines = "".join(f"{json.dumps(str(tmp_path / 'work' / folder))}\n" for folder in told)
            (run / "raw" / "event-folders.jsonl").write_text(f"{lines}7\n{{cut")
        return Plan(run, (), ("stacks",), **options)

    return made


def written(tmp_path, folder, *records, pid=77, age_s=0, ending=".0.v2"):
    created = int(time.time()) - age_s
    path = tmp_path / "work" / folder / f"events.out.tfevents.{created}.my.host.{pid}{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(records))
    return path


def figures(plan):
    """Process, name, value, step, epoch of all that was harvested."""
    folders, problems = harvest_events(plan, plan.raw("stacks"))
    found = []
    for folder in folders:
        trace = open_trace(folder / "stacks.jsonl")
        (process,) = trace.arrow("processes").to_pylist()
        rows = trace.arrow("metrics").to_pylist()
        found += [(process["pid"], *(row[key] for key in ("name", "value", "step", "epoch"))) for row in rows]
    return sorted(found, key=str), problems


def test_folders_that_the_hooks_told_of_are_read_and_their_list_goes(tmp_path, plan):
    written(tmp_path, "logs/train", event(simple("epoch_loss", 0.5), step=1))
    written(tmp_path, "logs/validation", event(simple("loss", float("nan")), step=9), pid=78, ending=".1")
    written(tmp_path, "others", event(simple("loss", 7.0)))
    made = plan("logs/train", "logs/validation", "gone")
    assert figures(made) == ([(77, "train/epoch_loss", 0.5, None, 1), (78, "validation/loss", None, 9, None)], ())
    assert not (made.folder / "raw" / "event-folders.jsonl").exists()


def test_without_hooks_those_below_the_working_folder_are_found_unless_they_are_of_earlier_runs(tmp_path, plan):
    written(tmp_path, "a/b/logs", event(simple("loss", 0.25)))
    written(tmp_path, "a/b/logs", event(simple("loss", 1.0)), age_s=3_600)
    os.utime(written(tmp_path, "old", event(simple("loss", 2.0))), (1, 1))
    for hidden in (".cache", "traceviz-runs/older", "site-packages/x", "1/2/3/4/5/6/7"):
        written(tmp_path, hidden, event(simple("loss", 3.0)))
    assert figures(plan()) == ([(77, "loss", 0.25, 0, None)], ())


def test_files_of_another_run_in_the_same_folder_are_left_to_it(tmp_path, plan):
    written(tmp_path, "logs", event(simple("loss", 0.5)), pid=77)
    written(tmp_path, "logs", event(simple("loss", 7.0)), pid=88)
    written(tmp_path, "logs", event(simple("loss", 0.25)), pid=79)
    made = plan("logs")
    (made.folder / "raw" / "processes.jsonl").write_text('{"pid": 77, "ppid": 1}\n{cut')
    (made.raw("stacks") / "79-2").mkdir()
    assert figures(made) == ([(77, "loss", 0.5, 0, None), (79, "loss", 0.25, 0, None)], ())


def test_a_folder_that_the_user_names_is_searched_to_its_depth(tmp_path, plan):
    written(tmp_path, "elsewhere/deep/runs", event(simple("acc", 0.5), step=3), pid="x", ending="")
    assert figures(plan(events=(tmp_path / "work" / "elsewhere",))) == ([(None, "acc", 0.5, 3, None)], ())


def test_of_many_values_the_telling_ones_are_kept_and_no_more_are_read_than_fit(tmp_path, plan, monkeypatch):
    monkeypatch.setattr(event_files, "MOST_SCALARS", 2_500)
    written(tmp_path, "logs", *(event(simple("loss", number), step=number) for number in range(2_600)))
    found, problems = figures(plan("logs"))
    assert (len(found), max(value for _, _, value, _, _ in found)) == (2_000 + 500 // 10 * 2, 2_499.0)
    assert [problem.code for problem in problems] == ["events-unreadable"]
    assert "more than 2,500 values" in problems[0].message


def test_a_damaged_file_is_said_and_what_is_before_it_is_kept(tmp_path, plan):
    written(tmp_path, "logs", event(simple("loss", 0.5)), b"x" * 40)
    found, (problem,) = figures(plan("logs"))
    assert (len(found), problem.code) == (1, "events-unreadable")
    assert str(tmp_path) not in problem.message


@pytest.fixture
def event_folders(monkeypatch):
    monkeypatch.syspath_prepend(HOOKS)
    yield import_module("traceviz_inject.facts.event_folders")
    for name in [name for name in sys.modules if name.startswith("traceviz_inject")]:
        del sys.modules[name]


def test_writers_tell_their_folder_once_and_remote_ones_do_not(tmp_path, monkeypatch, event_folders):
    monkeypatch.setattr(event_folders, "_raw", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    class EventFileWriter:
        def __init__(self, logdir, max_queue_size=10):
            self.logdir = logdir

    module = type(os)("tensorboardX.event_file_writer")
    module.EventFileWriter = EventFileWriter
    event_folders._hook(module)
    for given in ("logs", "logs", "gs://bucket/logs"):
        EventFileWriter(given)
    EventFileWriter(logdir=tmp_path / "named")
    told = [json.loads(line) for line in (tmp_path / event_folders.FILE).read_text().splitlines()]
    assert told == [str(tmp_path / "logs"), str(tmp_path / "named")]


def test_figures_that_cannot_be_kept_are_said_and_cost_nothing_else(tmp_path, plan):
    written(tmp_path, "logs", event(simple("loss", 0.5)))
    made = plan("logs")
    (made.raw("stacks") / "events-0").write_text("in the way")
    folders, (problem,) = harvest_events(made, made.raw("stacks"))
    assert (folders, problem.code) == ((), "events-unsaved")
