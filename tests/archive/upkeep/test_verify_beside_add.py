"""A check while another program adds: traces that have just been written are not faults, and no repair touches them."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.archive import adding
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.ingest.add import add
from traceviz.archive.ingest.ingest import IngestOptions, ingest
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.sources.hashes import Item
from traceviz.archive.storage import layout
from traceviz.archive.storage.leases import lease
from traceviz.archive.storage.store import Store
from traceviz.archive.upkeep.verify import Repaired, repair, verify
from traceviz.cli.main import main

COUNT = 2


@pytest.fixture(scope="module")
def sources(samples):
    return adding.sources(samples)[-COUNT:]


@pytest.fixture(scope="module")
def written(sources, tmp_path_factory):
    """Folders of traces that no catalogue lists."""
    store = Store.at(tmp_path_factory.mktemp("written") / "archive")
    layout.create(store)
    for source in sources:
        ingest(Item(source, Path(source).name), store, IngestOptions(now_ns=time.time_ns()))
    return Path(store.url, "traces")


@pytest.fixture
def store(written, tmp_path):
    """An archive to which this process adds: traces are written, and the catalogue does not have them yet."""
    store = Store.at(tmp_path / "archive")
    layout.create(store)
    with lease(store):
        shutil.copytree(written, Path(store.url, "traces"), copy_function=shutil.copy, dirs_exist_ok=True)
        yield store


def lease_of(store):
    (path,) = Path(store.url, "work").glob("add-*")
    return path


def look(store):
    verified = verify(store)
    return [fault.kind for fault in verified.faults], len(verified.arriving), verified.traces


def check_and_repair(store):
    result = CliRunner().invoke(main, ["archive", "verify", "--repair", store.url])
    assert result.exit_code == 0
    return result.stdout


def test_traces_of_an_add_at_work_are_counted_apart_until_it_has_listed_them(store, sources):
    assert look(store) == ([], COUNT, COUNT)
    said = check_and_repair(store)
    assert "0 faults" in said
    assert "not in the catalogue yet: an add at work will list" in said
    assert catalogue.segments(store) == []
    assert add(store, sources, adding.OPTIONS, SerialRunner()).taken_up == COUNT
    assert look(store) == ([], 0, COUNT)
    assert list(Path(store.url, "work").iterdir()) == [lease_of(store)]


def test_what_a_killed_add_wrote_is_unlisted_and_repaired(store):
    dead = subprocess.Popen(["true"])
    dead.wait()
    path = lease_of(store)
    path.rename(path.with_name(path.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-")))
    faults, arriving, traces = look(store)
    assert (arriving, traces) == (0, COUNT)
    assert sorted(faults) == ["leftover", *["unlisted"] * COUNT]
    check_and_repair(store)
    assert look(store) == ([], 0, COUNT)


def test_what_an_earlier_add_left_is_unlisted_although_another_one_is_at_work(store):
    for file in Path(store.url, "traces").rglob("*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    verified = verify(store)
    assert {fault.kind for fault in verified.faults} == {"unlisted"}
    assert verified.arriving == ()
    assert repair(store, verified.faults) == Repaired(len(verified.faults))


def test_a_lease_that_was_not_renewed_for_a_day_shows_no_add(store):
    os.utime(lease_of(store), (1_000_000_000, 1_000_000_000))
    faults, arriving, _ = look(store)
    assert (set(faults), arriving) == ({"unlisted", "leftover"}, 0)


def test_a_repair_leaves_a_trace_alone_that_arrives_after_the_check(store):
    arriving = verify(store).arriving
    assert arriving
    assert repair(store, arriving) == Repaired(0)
    assert catalogue.segments(store) == []
