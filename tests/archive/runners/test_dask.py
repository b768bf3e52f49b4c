"""The Dask runner on a real scheduler with two worker processes."""

import os
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from distributed import Client, LocalCluster

from tests.archive import work
from tests.archive.clusters import dask_cluster, wait_until
from traceviz.archive.runners import dask as dask_runner
from traceviz.archive.runners.base import RunnerError
from traceviz.archive.runners.choose import runner_for
from traceviz.archive.runners.dask import DaskRunner
from traceviz.archive.storage.store import Store
from traceviz.cli.main import main
from traceviz.core.errors import WorkerError
from traceviz.version import __version__


@pytest.fixture(scope="module")
def client():
    """A cluster within this process: what it shows needs no processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def results(runner, function, arguments):
    return dict(runner.map(function, arguments))


def test_both_workers_work(dask_address, tmp_path):
    with closing(
        DaskRunner(dask_address).map(work.waits_for_all, [(str(tmp_path), 2, name) for name in "ab"])
    ) as running:
        outcomes = dict(running)
    assert len(set(outcomes.values())) == 2
    assert os.getpid() not in outcomes.values()


def test_a_client_that_is_connected_stays_open(client):
    assert results(DaskRunner(client), work.doubled, [2]) == {2: 4}
    assert client.status == "running"


def test_arguments_are_taken_when_there_is_a_worker_for_them(client):
    taken = []

    def arguments():
        for number in range(1000):
            taken.append(number)
            yield number

    with closing(DaskRunner(client).map(work.doubled, arguments())) as running:
        for _ in range(3):
            next(running)
        assert len(taken) <= 3 + 2 * 2


def test_a_crash_is_the_error_of_its_argument_alone(dask_address):
    outcomes = results(DaskRunner(dask_address), work.dies_on_13, range(10, 20))
    died = outcomes.pop(13)
    assert (died.code, died.cause) == ("worker-died", None)
    assert died.message.startswith("Every worker that worked on it died, the last at tcp://127.0.0.1:")
    assert outcomes == {number: number for number in range(10, 20) if number != 13}


def test_of_several_that_went_down_together_only_who_did_it_is_blamed(dask_address):
    outcomes = list(DaskRunner(dask_address).map(work.dies_on_13, [13, 14, 13, 15]))
    assert sorted(argument for argument, _ in outcomes) == [13, 13, 14, 15]
    assert {argument for argument, result in outcomes if isinstance(result, RunnerError)} == {13}


def test_what_a_killed_worker_had_is_run_again(dask_address, tmp_path):
    released = tmp_path / "released"
    with Client(dask_address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        ids = client.run(os.getpid)
        running = DaskRunner(client).map(work.slow, [(released, number) for number in range(8)])
        outcomes = []
        taker = threading.Thread(target=lambda: outcomes.extend(running))
        taker.start()
        wait_until(lambda: any(client.processing().values()))
        os.kill(next(iter(ids.values())), signal.SIGKILL)
        wait_until(lambda: set(client.scheduler_info()["workers"]) != set(ids))
        released.touch()
        taker.join()
    assert sorted(outcomes) == [((released, number), number) for number in range(8)]


def test_closing_early_takes_everything_off_the_cluster(client, tmp_path):
    released = tmp_path / "released"
    running = DaskRunner(client).map(work.slow, [(tmp_path, 0), *((released, number) for number in range(1, 9))])
    assert next(running) == ((tmp_path, 0), 0)
    running.close()
    released.touch()
    wait_until(lambda: not any(client.processing().values()))


def test_another_version_on_the_workers_is_refused_with_both(dask_address, monkeypatch):
    monkeypatch.setattr(dask_runner, "__version__", "99.0")
    with pytest.raises(WorkerError, match=rf"tcp://.* has traceviz {dask_runner_version()}; this is 99\.0\."):
        results(DaskRunner(dask_address), work.doubled, [1])


def dask_runner_version():
    from importlib.metadata import version

    return version("traceviz-toolkit").replace(".", r"\.")


def test_a_worker_of_another_version_that_joins_late_is_refused_there():
    assert dask_runner.work(work.doubled, 2, __version__) == 4
    with pytest.raises(WorkerError, match="joined late has traceviz"):
        dask_runner.work(work.doubled, 2, "99.0")


def test_workers_that_see_another_folder_of_that_name_are_found_before_anything_is_sent(client, tmp_path):
    archive, sources = Store.at(tmp_path / "archive"), (tmp_path, tmp_path / "*.sqlite")
    assert results(DaskRunner(client, archive, sources), work.doubled, [1]) == {1: 2}
    assert archive.names("work") == []
    with pytest.raises(WorkerError, match=f"does not see {archive.url}"):
        dask_runner._check_seen(archive.url, {"tcp://far:1": dask_runner.can_read(archive, "made-elsewhere")})


def test_a_source_that_workers_do_not_see_is_named():
    with pytest.raises(WorkerError, match="The worker tcp://far:1 does not see /traces") as caught:
        dask_runner._check_seen("/traces", {"tcp://near:1": True, "tcp://far:1": False})
    assert caught.value.exit_code == 3


@pytest.mark.slow
def test_a_cluster_without_workers_is_said_not_waited_for(tmp_path):
    with dask_cluster(tmp_path, workers=0) as address, pytest.raises(WorkerError, match="started no worker within 1 s"):
        results(DaskRunner(address, patience_s=1), work.doubled, [1])


def test_an_address_where_nobody_answers_is_said():
    runner = DaskRunner("tcp://127.0.0.1:1", patience_s=0.5)
    with pytest.raises(WorkerError, match=r"scheduler tcp://127\.0\.0\.1:1 does not answer"):
        results(runner, work.doubled, [1])


def test_who_speaks_another_protocol_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as waiter:
        waiter.submit(answer_as_a_web_server, server)
        runner = DaskRunner(f"tcp://127.0.0.1:{server.getsockname()[1]}", patience_s=5)
        with pytest.raises(WorkerError, match="does not answer"):
            results(runner, work.doubled, [1])


def answer_as_a_web_server(server):
    for _ in range(2):  # the probe for a listener, then the client
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize(("address", "code"), [("foo", 2), ("tcp://127.0.0.1:1", 3)])
def test_a_command_whose_scheduler_is_not_there_ends_at_once_with_a_sentence(tmp_path, address, code):
    Store.at(tmp_path / "a").write(b'{"kind": "traceviz.archive", "version": 1}', "archive.json")
    ended = CliRunner().invoke(main, ["archive", "query", str(tmp_path / "a"), "SELECT 1", "--scheduler", address])
    assert (ended.exit_code, ended.stdout) == (code, "")
    assert ended.stderr.startswith("error: ")


@pytest.mark.slow
def test_a_scheduler_that_is_lost_ends_it(tmp_path):
    released = tmp_path / "released"
    with dask_cluster(tmp_path) as address:
        running = DaskRunner(address).map(work.slow, [(tmp_path, 0), (released, 1)])
        next(running)
    with pytest.raises(WorkerError, match="scheduler is lost"):
        list(running)


def test_the_command_line_names_a_scheduler(tmp_path):
    store = Store.at(tmp_path)
    runner = runner_for(scheduler="tcp://host:8786", store=store, sources=["/traces", "s3://bucket/traces", "runs"])
    assert runner == DaskRunner("tcp://host:8786", store, (Path("/traces"), Path.cwd() / "runs"))


def test_the_command_line_does_not_load_dask():
    import subprocess

    code = "import sys, traceviz.cli.main, traceviz.archive.runners.local; sys.exit('distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
