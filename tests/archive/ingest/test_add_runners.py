"""The same archive with any runner: this process, others, a Dask cluster with a killed worker."""

import os
import signal
import threading

import pytest
from distributed import Client
from polars.testing import assert_frame_equal

from tests.archive import adding
from tests.archive.clusters import wait_until
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.ingest.add import add
from traceviz.archive.runners.dask import DaskRunner
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.storage.store import Store
from traceviz.archive.upkeep.verify import verify

WHEN = ("added_ns", "changed_ns")
COUNT = len(adding.SAMPLES)


@pytest.fixture(scope="module")
def sources(samples):
    return adding.sources(samples)


@pytest.fixture(scope="module")
def serial(sources, tmp_path_factory):
    """An archive that was made in this process."""
    store = Store.at(tmp_path_factory.mktemp("serial") / "archive")
    added = add(store, sources, adding.OPTIONS, SerialRunner())
    assert (added.added, added.quarantined, added.refused) == (COUNT, (), ())
    return store


def check_same(store, other):
    tables = adding.tables_of(store)
    assert len(tables) > 10 * COUNT
    assert tables == adding.tables_of(other)
    rows, others = (catalogue.read(archive).drop(WHEN) for archive in (store, other))
    assert_frame_equal(rows, others, check_exact=False, rel_tol=1e-12)  # sums of floats in any order
    assert verify(store).faults == ()


def test_a_cluster_writes_the_same_bytes_and_a_killed_worker_loses_nothing(serial, sources, tmp_path, dask_address):
    store = Store.at(tmp_path / "archive")
    results = []
    with Client(dask_address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        ids = client.run(os.getpid)
        runner = DaskRunner(client, store)
        adder = threading.Thread(target=lambda: results.append(add(store, sources, adding.OPTIONS, runner)))
        adder.start()
        wait_until(lambda: any(client.processing().values()))
        busy = next(worker for worker, keys in client.processing().items() if keys)
        os.kill(ids[busy], signal.SIGKILL)
        adder.join()
    (added,) = results
    assert (added.added, added.known, added.quarantined, added.refused) == (COUNT, 0, (), ())
    check_same(store, serial)
