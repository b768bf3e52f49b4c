"""Concurrent, killed and out-of-space adds: existing data is complete, missing data is named, and add fixes it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.archive import adding
from tests.conftest import REPOSITORY
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.ingest.add import add
from traceviz.archive.runners.local import LocalRunner, SerialRunner
from traceviz.archive.storage.store import Store
from traceviz.archive.upkeep.verify import repair, verify
from traceviz.core.errors import OutputError

pytestmark = pytest.mark.slow  # programs, and disks of their own; test_add shows the same of one process
COUNT = 5
PATIENCE_S = 120


@pytest.fixture(scope="module")
def sources(samples):
    return adding.sources(samples)[-COUNT:]


@pytest.fixture(scope="module")
def whole(sources, tmp_path_factory):
    """Everything that an undisturbed add writes."""
    store = Store.at(tmp_path_factory.mktemp("whole") / "archive")
    add(store, sources, adding.OPTIONS, SerialRunner())
    return adding.tables_of(store)


def adder(place, workers, sources, **options):
    command = [sys.executable, "-m", "tests.archive.adding", str(place), str(workers), *sources]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, **options)


def check_mended(store, sources, whole):
    """Check that adding again completes everything, and that a third add changes nothing."""
    completed = add(store, sources, adding.OPTIONS, SerialRunner())
    assert (completed.quarantined, completed.refused) == ((), ())
    assert adding.tables_of(store) == whole
    assert verify(store).traces == COUNT
    assert [fault for fault in verify(store).faults if fault.kind != "leftover"] == []
    again = add(store, sources, adding.OPTIONS, SerialRunner())
    assert (again.added, again.mended, again.known) == (0, 0, COUNT)


def test_2_adds_at_once_leave_every_trace_once(sources, whole, tmp_path):
    store = Store.at(tmp_path / "archive")
    programs = [adder(store.url, 1, order) for order in (sources, sources[::-1])]
    counts = [[int(count) for count in program.communicate(timeout=PATIENCE_S)[0].split()] for program in programs]
    assert [program.returncode for program in programs] == [0, 0]
    assert [added + known for added, known, *_ in counts] == [COUNT, COUNT]
    assert [bad for _, _, *bad in counts] == [[0, 0], [0, 0]]
    rows = catalogue.ready(catalogue.read(store))
    assert rows["trace_id"].n_unique() == COUNT
    assert adding.tables_of(store) == whole
    assert verify(store).faults == ()


@pytest.mark.parametrize("moment", [1, 3])
def test_what_a_killed_add_left_is_whole_and_adding_again_completes_it(sources, whole, tmp_path, moment):
    store = Store.at(tmp_path / "archive")
    program = adder(store.url, 2, sources, start_new_session=True)
    wait_until(lambda: len(manifests(store)) >= moment)
    os.killpg(program.pid, signal.SIGKILL)
    program.communicate()
    done = len(manifests(store))
    assert moment <= done
    assert adding.tables_of(store).items() <= whole.items()
    codes = {fault.kind for fault in verify(store).faults}
    assert codes <= {"unlisted", "leftover"}
    completed = add(store, sources, adding.OPTIONS, LocalRunner(2))
    assert (completed.added, completed.taken_up) == (COUNT, done)
    check_mended(store, sources, whole)


def manifests(store):
    return list(Path(store.url).glob("traces/*/*/manifest.json"))


@contextlib.contextmanager
def small_disk(folder, size):
    """Mount a file system of so many bytes, if this user may mount one."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="mount is not installed")
@pytest.mark.parametrize("runner", [SerialRunner(), LocalRunner(2)], ids=["serial", "local"])
def test_a_full_disk_ends_the_add_with_its_reason_and_what_was_added_stays(sources, whole, tmp_path, runner):
    with small_disk(tmp_path, size=600_000):
        store = Store.at(tmp_path / "archive")
        with pytest.raises(OutputError, match="No space left on device"):
            add(store, sources, adding.OPTIONS, runner)
        assert {fault.kind for fault in verify(store).faults} <= {"unlisted", "leftover"}
        assert adding.tables_of(store).items() <= whole.items()
        assert 0 < len(manifests(store)) < COUNT
        subprocess.run(["mount", "-o", "remount,size=100000000", tmp_path], check=True)
        check_mended(store, sources, whole)


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_add_that_is_interrupted_says_so_and_removes_what_it_was_writing(sources, whole, tmp_path):
    store = Store.at(tmp_path / "archive")
    command = [sys.executable, "-m", "traceviz", "archive", "add", store.url, *sources, "--workers", "2"]
    program = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(manifests(store)) >= 1)
    os.killpg(program.pid, signal.SIGINT)  # as a terminal does
    errors = program.communicate(timeout=PATIENCE_S)[1]
    assert program.returncode == 130
    assert "Traces added so far stay" in errors
    assert store.names("work") == []
    assert {fault.kind for fault in verify(store).faults} <= {"unlisted"}  # written, but not listed
    check_mended(store, sources, whole)


def test_an_archive_that_is_added_to_is_without_faults_but_for_what_is_not_listed_yet(sources, whole, tmp_path):
    store = Store.at(tmp_path / "archive")
    program = adder(store.url, 2, sources)
    wait_until(lambda: store.exists("archive.json"))
    seen = set()
    while program.poll() is None:
        faults = verify(store).faults
        seen |= {fault.kind for fault in faults}
        repair(store, faults)
    program.communicate()
    assert program.returncode == 0
    assert seen <= {"unlisted"}
    assert verify(store).faults == ()
    assert adding.tables_of(store) == whole
