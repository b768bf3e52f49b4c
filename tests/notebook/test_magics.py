"""``%%traceviz`` in a kernel: the run that it records, what it shows, and what happens to cells that fail."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import traceviz
from tests.notebook.executed import Output, run_notebook

pytestmark = pytest.mark.slow

LOOP = """
def work():
    time.sleep(0.02)
    return sum(range(300_000))

for number in range(25):
    with traceviz.step_range(number):
        found = work()
print("trained")
found
"""
CELLS = {
    "load": "%load_ext traceviz\nimport json, time, traceviz",
    "first": f"%%traceviz --with stacks,resources -o first --tag batch=32{LOOP}",
    "result": "type(_).__name__, _.status, str(_.folder.name), _.report.verdict.code",
    "second": f"%%traceviz --profilers stacks,resources --output second --name again{LOOP}",
    "compared": "traceviz.compare_runs('first', 'second')",
    "archived": "archive = traceviz.Archive('archive'); archive.add('first', 'second', workers=1); archive",
    "failing": "%%traceviz -o failing --with stacks\nbefore = 1\ntime.sleep(0.3)\nraise ValueError('no such batch')",
    "stopped": "%%traceviz -o stopped --with stacks\ntime.sleep(0.2)\nraise KeyboardInterrupt",
    "after": "before",
    "no Python": "%%traceviz -o nothing\nfor",
    "not here": "%%traceviz --with nsys\npass",
    "no option": "%%traceviz --nonsense\npass",
    "for programs": "%%traceviz --time-limit 10s\npass",
    "taken": "%%traceviz -o first\npass",
    "help": "%%traceviz --help\npass",
    "default": "%%traceviz --with resources\npass",
}


@dataclass(frozen=True)
class Ran:
    """The notebook, executed in a folder."""

    outputs: dict[str, Output]
    folder: Path

    def manifest(self, name: str) -> dict:
        return json.loads((self.folder / name / "manifest.json").read_text())


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("magics")
    return Ran(dict(zip(CELLS, run_notebook(list(CELLS.values()), folder), strict=True)), folder)


def test_a_recorded_cell_prints_and_shows_what_it_did_alone_and_then_its_report(ran: Ran) -> None:
    first = ran.outputs["first"]
    assert first.printed == "trained\n"
    assert first.shown[0] == {"text/plain": "44999850000"}
    assert first.shown[1]["text/html"].startswith('<div class="tv-fragment">')
    assert "Recorded into first" in first.plain
    assert (len(first.shown), first.errors) == (2, ())


def test_the_result_of_the_cell_is_what_was_recorded(ran: Ran) -> None:
    assert ran.outputs["result"].plain.startswith("('Recorded', 'finished', 'first', ")


@pytest.mark.parametrize(("name", "called"), [("first", "cell"), ("second", "again")])
def test_each_recorded_cell_has_its_25_steps_samples_and_a_manifest(ran: Ran, name: str, called: str) -> None:
    tables = traceviz.open(ran.folder / name)
    manifest = ran.manifest(name)
    steps = tables.to_pandas("phases").query("kind == 'step'")
    assert len(steps) == 25
    assert tables.rows("samples") > 10
    assert tables.rows("stacks") > 3
    assert (manifest["kind"], manifest["status"], manifest["name"]) == ("traceviz.run", "finished", called)
    assert manifest["exit"] == {"code": 0, "signal": None}
    assert 0.5e9 < manifest["duration_ns"] < 60e9
    states = {entry["name"]: entry["state"] for entry in manifest["collectors"]}
    assert (states["stacks"], states["resources"], states["nsys"]) == ("recorded", "recorded", "unsupported")


def test_tags_of_a_recorded_cell_are_in_its_report(ran: Ran) -> None:
    assert ran.manifest("first")["tags"] == {"batch": "32"}
    assert "32" in {str(fact.value) for fact in traceviz.analyze(ran.folder / "first").facts("run")}


def test_stacks_name_lines_of_the_cell_and_leave_the_kernels_own_threads_out(ran: Ran) -> None:
    tables = traceviz.open(ran.folder / "first")
    frames = tables.to_pandas("stack_frames")
    work = frames[frames["function"] == "work"]
    assert set(work["file"]) == {"cell"}
    assert set(work["line"]) <= {3, 4}
    assert "return sum" in CELLS["first"].splitlines()[4 - 1]
    roots = frames[frames["parent_id"].isna()]
    assert "<module>" in set(roots["function"])
    outer = roots[roots["file"].str.contains("ipykernel|asyncio")]  # the cell itself may call the kernel, to print
    assert outer.empty, outer.to_dict("records")
    threads = set(tables.to_pandas("threads")["name"].dropna())
    assert threads.isdisjoint({"Heartbeat", "IOPub", "Control"})


def test_nothing_that_traceviz_does_around_the_cell_is_in_its_stacks(ran: Ran) -> None:
    files = set(traceviz.open(ran.folder / "first").to_pandas("stack_frames")["file"])
    assert "cell" in files
    assert [name for name in files if name.startswith(("traceviz/notebook/", "collectors/"))] == []


def test_two_recorded_cells_are_compared_and_archived_as_runs_are(ran: Ran) -> None:
    assert ran.outputs["compared"].errors == ()
    assert "traceviz.to_text(comparison)" in ran.outputs["compared"].plain
    assert ran.outputs["archived"].plain.endswith("2 traces.")


def test_an_error_is_shown_once_after_the_report_on_what_was_recorded_until_then(ran: Ran) -> None:
    failing = ran.outputs["failing"]
    assert failing.errors == ("ValueError",)
    assert "no such batch" in failing.traceback
    assert "raise" in failing.traceback
    assert "Recorded into failing" in failing.plain
    manifest = ran.manifest("failing")
    assert (manifest["status"], manifest["exit"]["code"]) == ("failed", 1)
    assert manifest["ending"]["reason"] == "exit code 1: ValueError"
    assert traceviz.open(ran.folder / "failing").rows("stacks") > 0
    assert ran.outputs["after"].plain == "1"


def test_a_cell_that_is_interrupted_is_recorded_as_interrupted(ran: Ran) -> None:
    assert ran.outputs["stopped"].errors == ("KeyboardInterrupt",)
    assert (ran.manifest("stopped")["status"], ran.manifest("stopped")["exit"]["code"]) == ("interrupted", 130)


def test_a_cell_that_is_no_python_records_nothing(ran: Ran) -> None:
    assert ran.outputs["no Python"].errors == ("SyntaxError",)
    assert not (ran.folder / "nothing").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("not here", "nsys cannot record here (unsupported): It records a program from its start"),
        ("no option", "--nonsense are no options of %%traceviz"),
        ("for programs", "--time-limit is for a whole program"),
        ("taken", "first already exists"),
    ],
)
def test_what_cannot_be_recorded_is_said_in_a_line(ran: Ran, name: str, said: str) -> None:
    assert said in ran.outputs[name].printed.replace("'", "")
    assert ran.outputs[name].shown == ()
    assert len(ran.outputs[name].printed.strip().splitlines()) == 1


def test_help_lists_the_options(ran: Ran) -> None:
    assert "--duration TIME" in ran.outputs["help"].printed


def test_a_cell_without_a_folder_is_recorded_below_traceviz_runs(ran: Ran) -> None:
    assert ran.outputs["default"].errors == ()
    (folder,) = (ran.folder / "traceviz-runs").iterdir()
    assert re.fullmatch(r"cell-\d{8}-\d{6}", folder.name)


def test_no_hook_of_a_recording_is_left_at_work(ran: Ran, tmp_path: Path) -> None:
    cells = [
        "%load_ext traceviz\nimport os, sys, threading",
        "%%traceviz -o run --with stacks\nsum(range(10**6))",
        "from traceviz_inject.step_clock import CLOCK\nCLOCK.hears('keras'), 'TRACEVIZ_INJECT_OWNER' in os.environ",
    ]
    assert run_notebook(cells, tmp_path)[2].plain == "(False, False)"
