"""Reports of Pythons without hooks, and how env passes the hooks on."""

import json
import os
import sys

import pytest

from tests.collectors.run.driven import collect, manifest
from tests.support.command import run
from traceviz.collectors.base import Plan, Window
from traceviz.collectors.frameworks.injection import FOLDER, VARIABLE, hooks_of, lost_hooks, through_env
from traceviz.collectors.program.pythons import Unhooked

ADDED = {"PYTHONPATH": str(FOLDER), VARIABLE: "/run/inject.json", "TRACEVIZ_INJECT_STACKS": "100"}
ADDED["TRACEVIZ_INJECT_OWNER"] = ""
PATH = f"PYTHONPATH={FOLDER}"
REST = [f"{VARIABLE}=/run/inject.json", "TRACEVIZ_INJECT_STACKS=100", "TRACEVIZ_INJECT_OWNER="]


@pytest.mark.parametrize(
    ("typed", "carried"),
    [
        ("env PYTHONPATH=src python t.py", ["env", "PYTHONPATH=src", f"{PATH}:src", "python", "t.py"]),
        ("/usr/bin/env A=1 PYTHONPATH= python", ["/usr/bin/env", "A=1", "PYTHONPATH=", PATH, "python"]),
        ("env -u PYTHONPATH python", ["env", "-u", "PYTHONPATH", PATH, "python"]),
        ("env --unset=TRACEVIZ_INJECT x", ["env", "--unset=TRACEVIZ_INJECT", REST[0], "x"]),
        ("env -i A=1 python t.py", ["env", "-i", "A=1", PATH, *REST, "python", "t.py"]),
        ("env -i PYTHONPATH=a x", ["env", "-i", "PYTHONPATH=a", f"{PATH}:a", *REST, "x"]),
        ("env -C /tmp A=1 python PYTHONPATH=b", None),
        ("env -S PYTHONPATH=a python", None),
        ("env PYTHONPATH=a", None),
        ("python t.py", None),
    ],
)
def test_env_carries_the_hooks_behind_what_it_changes(typed, carried):
    command = typed.split()
    assert through_env(command, ADDED, {}) == tuple(carried or command)
    assert through_env(command, {}, {}) == tuple(command)  # nothing to carry


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "raw").mkdir()
    return Plan(tmp_path, ("python", "t.py"), ("stacks",), Window())


def test_processes_of_one_kind_are_counted_together_with_their_time_and_the_change(plan):
    seen = {1: Unhooked("t.py", "replaced", 2.0), 2: Unhooked("t.py", "replaced", 3.0), 3: Unhooked("a.py", "-I", 1.0)}
    (problem,) = lost_hooks(plan, seen.items())
    assert problem.message == (
        "3 Python processes ran without hooks, so that their steps and stacks were not recorded. "
        "t.py (2 processes): PYTHONPATH was replaced, 5.00 s of processor time; "
        "a.py: it runs with python -I, 1.00 s of processor time."
    )
    assert problem.fix == (
        "Add to PYTHONPATH instead of replacing it: PYTHONPATH=FOLDER:$PYTHONPATH. Run python without -I."
    )


@pytest.mark.parametrize(("cpu_s", "reported"), [(0.49, 0), (0.5, 1)])
def test_beside_hooked_processes_only_those_that_worked_are_reported(plan, cpu_s, reported):
    (plan.folder / "raw" / "processes.jsonl").write_text('{"pid": 1, "ppid": 0, "python": "3.11.7"}\n{"pid": 2')
    assert len(lost_hooks(plan, {3: Unhooked("t.py", "-I", cpu_s)}.items())) == reported
    assert lost_hooks(plan, {1: Unhooked("t.py", "-I", 9.0)}.items()) == ()  # it has loaded them all the same


def test_without_collectors_in_the_program_there_are_no_hooks_to_lose(plan, tmp_path):
    assert hooks_of(plan).settings == str(tmp_path / "inject.json")
    assert hooks_of(Plan(tmp_path, ("python",), ("resources",), Window())) is None


BUSY = """
import sys, time
begun = time.process_time()
while time.process_time() - begun < 0.5:
    sum(range(1000))
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    (tmp_path / "busy.py").write_text(BUSY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recorded(program, *command):
    done = collect("--with", "stacks", "-o", program / "run", "--", *command, collectors=None, timeout=240)
    assert done.returncode == 0, done.stderr
    problems = {problem["code"]: problem["message"] for problem in manifest(program / "run")["problems"]}
    return done.stderr, problems


@pytest.mark.process
def test_a_python_whose_path_env_replaces_is_recorded(program):
    stderr, problems = recorded(program, "env", "PYTHONPATH=src", sys.executable, "busy.py")
    assert problems == {}
    (line,) = (program / "run" / "raw" / "processes.jsonl").read_text().splitlines()
    assert json.loads(line)["pid"] > 0
    assert "without hooks" not in stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("shell", "why"),
    [
        ("PYTHONPATH=src {python} busy.py; :", "busy.py: PYTHONPATH was replaced"),
        ("unset TRACEVIZ_INJECT; {python} busy.py; :", "busy.py: the environment was emptied"),
    ],
)
def test_a_python_without_hooks_is_named_when_collect_ends_and_first_in_the_report(program, shell, why):
    stderr, problems = recorded(program, "bash", "-c", shell.format(python=sys.executable))
    assert why in problems["hooks-lost"]
    assert why in stderr
    assert "not-injected" not in problems
    assert "made no use" not in stderr


@pytest.mark.process
def test_the_first_screen_of_a_report_names_the_pythons_without_hooks(program):
    recorded_by = ("--with", "stacks,resources", "-o", program / "run", "--", "bash", "-c")
    shell = f"{sys.executable} -I busy.py; :"
    done = collect(*recorded_by, shell, collectors=None, timeout=240, env=dict(os.environ))
    assert done.returncode == 0
    text = " ".join(run("report", program / "run").stdout.split())
    first = text.partition(" ! ")[2]
    assert first.startswith(
        "A Python process ran without hooks, so that its steps and stacks were not recorded. busy.py:"
    )
    assert "it runs with python -I" in first
