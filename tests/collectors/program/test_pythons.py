"""Distinguishing Python processes that cannot have loaded the hooks from those that have."""

import os
import signal
import subprocess
import sys
import time

import pytest

from traceviz.collectors.program.pythons import Hooks, Pythons, watching, why_unhooked

HOOKS = Hooks("/hooks", "TRACEVIZ_INJECT", "/run/inject.json")
GOOD = {"PYTHONPATH": "/hooks:/src", "TRACEVIZ_INJECT": "/run/inject.json"}


@pytest.mark.parametrize(
    ("words", "environment", "why"),
    [
        ("python train.py", GOOD, ""),
        ("python -u -X faulthandler -W ignore train.py -I", GOOD, ""),
        ("python -c import_x -S", GOOD, ""),
        ("python -mpytest -E", GOOD, ""),
        ("python -WI train.py", GOOD, ""),
        ("python -I train.py", GOOD, "-I"),
        ("python -uE train.py", GOOD, "-E"),
        ("python -X dev -S train.py", GOOD, "-S"),
        ("python --check-hash-based-pycs=never -I train.py", GOOD, "-I"),
        ("python train.py", {**GOOD, "PYTHONPATH": "/src"}, "replaced"),
        ("python train.py", {"TRACEVIZ_INJECT": "/run/inject.json"}, "replaced"),
        ("python train.py", {"PYTHONPATH": "/hooks"}, "emptied"),
        ("python train.py", {"TRACEVIZ_INJECT": "/other/inject.json"}, ""),
    ],
)
def test_the_environment_and_options_show_why_a_python_has_no_hooks(words, environment, why):
    assert why_unhooked(words.split(), environment, HOOKS) == why


@pytest.fixture
def started():
    """Starts Pythons that wait, and ends them."""
    processes = []

    def start(*words, **environment):
        variables = {"PATH": os.environ["PATH"], **environment}
        code = "import sys, time; sys.stdout.write('x'); sys.stdout.flush(); time.sleep(60)"
        process = subprocess.Popen(
            [*words, code, "train"], env=variables, stdout=subprocess.PIPE, start_new_session=True
        )
        processes.append(process)
        assert process.stdout.read(1) == b"x"
        return process.pid

    yield start
    for process in processes:
        os.killpg(process.pid, signal.SIGKILL)  # a shell's Python would keep the pipe open
        process.communicate()


@pytest.mark.process
def test_a_look_names_processes_by_what_runs_and_forgets_those_that_execute_others(started):
    plain = started(sys.executable, "-I", "-c", **GOOD)
    good = started(sys.executable, "-c", **GOOD)
    seen = Pythons(HOOKS)
    seen.unhooked[good] = seen.unhooked[os.getpid()] = None  # as if an earlier look had found them otherwise
    seen.look((plain, good, 2**22 + 1))
    assert {pid: (found.name, found.why) for pid, found in seen.unhooked.items() if pid != os.getpid()} == {
        plain: ("python -c", "-I")
    }
    assert 0 <= seen.unhooked[plain].cpu_s < 60


@pytest.mark.process
def test_descendants_are_seen_while_a_block_lasts(started):
    pid = started("bash", "-c", f'{sys.executable} -S -c "$0"; :', **GOOD)
    begun = time.monotonic()
    with watching(HOOKS, lambda: (pid,)) as seen:
        while not seen.unhooked and time.monotonic() - begun < 60:
            time.sleep(0.05)
    assert [found.why for found in seen.unhooked.values()] == ["-S"]


def test_without_hooks_nothing_is_looked_at():
    with watching(None, lambda: (1,)) as seen:
        time.sleep(0.2)
    assert seen.unhooked == {}
