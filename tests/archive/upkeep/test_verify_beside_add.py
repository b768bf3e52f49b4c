"""A check while another program adds: traces that have just been written are not faults, and no repair touches them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.archive import adding
from tests.conftest import REPOSITORY
from tests.support.command import run
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.storage.store import Store
from traceviz.archive.upkeep.verify import Repaired, repair, verify

pytestmark = pytest.mark.process
PATIENCE_S = 240


@pytest.fixture
def adder(samples, tmp_path):
    """A program that adds 3 traces, held up when the first is written and the catalogue does not have it."""
    sources = adding.sources(samples)[-3:]
    command = [sys.executable, "-m", "tests.archive.adding", str(tmp_path / "archive"), "1", *sources]
    program = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, start_new_session=True)
    begun = time.monotonic()
    while not list((tmp_path / "archive").glob("traces/*/*/manifest.json")):
        assert program.poll() is None
        assert time.monotonic() - begun < PATIENCE_S
        time.sleep(0.01)
    os.killpg(program.pid, signal.SIGSTOP)
    yield program
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def look(store):
    verified = verify(store)
    return [fault.kind for fault in verified.faults], len(verified.arriving), verified.traces


def test_traces_of_an_add_at_work_are_counted_apart_until_it_has_listed_them(adder, tmp_path):
    store = Store.at(tmp_path / "archive")
    faults, arriving, traces = look(store)
    assert faults == []
    assert arriving == traces >= 1
    checked = run("archive", "verify", "--repair", tmp_path / "archive")
    assert (checked.returncode, "0 faults" in checked.stdout) == (0, True)
    assert "not in the catalogue yet: an add at work will list" in checked.stdout
    assert catalogue.segments(store) == []
    os.killpg(adder.pid, signal.SIGCONT)
    adder.wait(timeout=PATIENCE_S)
    assert (adder.returncode, *look(store)) == (0, [], 0, 3)
    assert list(Path(tmp_path, "archive", "work").iterdir()) == []


def test_what_a_killed_add_wrote_is_unlisted_and_repaired(adder, tmp_path):
    os.killpg(adder.pid, signal.SIGKILL)
    adder.wait()
    store = Store.at(tmp_path / "archive")
    faults, arriving, traces = look(store)
    assert arriving == 0
    assert faults.count("unlisted") == traces >= 1
    assert set(faults) == {"unlisted", "leftover"}
    assert run("archive", "verify", "--repair", tmp_path / "archive").returncode == 0
    assert look(store) == ([], 0, traces)


def test_what_an_earlier_add_left_is_unlisted_although_another_one_is_at_work(adder, tmp_path):
    store = Store.at(tmp_path / "archive")
    for file in (tmp_path / "archive" / "traces").rglob("*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    verified = verify(store)
    assert {fault.kind for fault in verified.faults} == {"unlisted"}
    assert verified.arriving == ()
    assert repair(store, verified.faults) == Repaired(len(verified.faults))


def test_a_lease_that_was_not_renewed_for_a_day_shows_no_add(adder, tmp_path):
    (lease,) = (tmp_path / "archive" / "work").glob("add-*")
    os.utime(lease, (1_000_000_000, 1_000_000_000))
    faults, arriving, _ = look(Store.at(tmp_path / "archive"))
    assert (set(faults), arriving) == ({"unlisted", "leftover"}, 0)


def test_a_repair_leaves_a_trace_alone_that_arrives_after_the_check(adder, tmp_path):
    store = Store.at(tmp_path / "archive")
    arriving = verify(store).arriving
    assert arriving
    assert repair(store, arriving) == Repaired(0)
    assert catalogue.segments(store) == []
