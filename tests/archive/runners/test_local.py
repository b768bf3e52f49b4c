"""Runners: every argument gets its own result, independent of the others."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.archive import work
from tests.conftest import REPOSITORY
from traceviz.archive.runners.base import RunnerError
from traceviz.archive.runners.choose import run_one, runner_for
from traceviz.archive.runners.local import LocalRunner, SerialRunner, usable_cores
from traceviz.core.errors import OutputError, UsageError, WorkerError

PATIENCE_S = 60


def results(runner, function, arguments):
    return dict(runner.map(function, arguments))


@pytest.mark.parametrize("runner", [SerialRunner(), LocalRunner(1), LocalRunner(3)], ids=str)
def test_every_argument_comes_back_once_with_its_result(runner):
    outcomes = list(runner.map(work.doubled, range(25)))
    assert sorted(outcomes) == [(number, 2 * number) for number in range(25)]


@pytest.mark.parametrize("runner", [SerialRunner(), LocalRunner(2)], ids=str)
def test_an_error_is_the_result_of_its_argument_and_keeps_its_3_sentences(runner):
    outcomes = results(runner, work.fails_on_odd, range(4))
    assert (outcomes[0], outcomes[2]) == (0, 2)
    assert outcomes[3].code == "failed"
    assert isinstance(outcomes[3].cause, OutputError)
    assert (outcomes[3].cause.what, outcomes[3].cause.why) == ("3 is odd.", "It was asked for.")
    assert outcomes[3].message == "3 is odd. It was asked for. Ask for another."


@pytest.mark.parametrize("runner", [SerialRunner(), LocalRunner(2)], ids=str)
def test_an_error_of_others_says_where_it_was_raised_without_folders(runner):
    outcomes = results(runner, work.divides, [0, 3])
    assert outcomes[3] == 4
    place, _, message = outcomes[0].message.partition(": ")
    assert place.rstrip("0123456789") == "ZeroDivisionError at traceviz.archive.runners.base:"
    assert message == "integer division or modulo by zero"


def test_processes_work_in_other_processes_as_many_as_were_asked_for():
    used = set(results(LocalRunner(2), work.process_id, range(40)).values())
    assert os.getpid() not in used
    assert 1 <= len(used) <= 2


def test_arguments_are_taken_when_there_is_a_worker_for_them():
    taken = []

    def arguments():
        for number in range(1000):
            taken.append(number)
            yield number

    with closing(LocalRunner(2).map(work.doubled, arguments())) as running:
        for _ in range(3):
            next(running)
        assert len(taken) <= 3 + 2


def test_a_crash_is_the_error_of_its_argument_alone():
    outcomes = results(LocalRunner(2), work.dies_on_13, range(20))
    assert outcomes.pop(13) == RunnerError(
        "worker-died", "The process that worked on it was ended twice, by SIGSEGV.", None
    )
    assert outcomes == {number: number for number in range(20) if number != 13}


def test_an_argument_whose_worker_is_killed_once_is_run_again(tmp_path):
    paths = [str(tmp_path / name) for name in ("a", "b", "c")]
    assert results(LocalRunner(2), work.dies_the_first_time, paths) == dict(zip(paths, "abc", strict=True))


def test_workers_share_the_cores_among_their_threads():
    cores = len(os.sched_getaffinity(0))
    (outcomes,) = results(LocalRunner(4 * cores), work.threads_of_polars, [1]).values()
    assert outcomes == 1


def test_no_arguments_need_no_process():
    assert results(LocalRunner(2), work.doubled, []) == {}


def test_closing_early_ends_all_processes(tmp_path):
    released, others = tmp_path / "released", children(os.getpid())
    running = LocalRunner(2).map(work.slow, [(tmp_path, 1), (released, 2), (released, 3)])
    assert next(running) == ((tmp_path, 1), 1)
    running.close()
    assert children(os.getpid()) == others


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_is_stopped_leaves_nothing_running(tmp_path, sent):
    command = [sys.executable, "-m", "tests.archive.work", tmp_path / "ids"]
    program = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL)
    started = [tmp_path / "ids.0", tmp_path / "ids.1"]
    try:
        wait_until(lambda: all(path.exists() for path in started))
        ids = [int(process) for path in started for process in path.read_text().split()]
        assert all(is_running(process) for process in ids)
        program.send_signal(sent)
        program.wait(PATIENCE_S)
        wait_until(lambda: not any(is_running(process) for process in ids))
    finally:
        program.kill()
        program.wait()


def test_without_a_guard_around_the_program_the_error_says_what_to_do(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from tests.archive import work\nfrom traceviz.archive.runners.local import LocalRunner\n"
        "list(LocalRunner(1).map(work.doubled, [1]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "WorkerError: Worker processes cannot be started: the first ended with exit code 1." in done.stderr
    assert "if __name__ == '__main__':" in done.stderr


def test_one_result_is_returned_or_its_error_raised():
    assert run_one(SerialRunner(), work.doubled, 4) == 8
    with pytest.raises(OutputError, match="3 is odd"):
        run_one(SerialRunner(), work.fails_on_odd, 3)
    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        run_one(SerialRunner(), work.divides, 0)


def test_the_command_line_chooses_a_runner():
    assert runner_for() == LocalRunner(len(os.sched_getaffinity(0)))
    assert runner_for(3) == LocalRunner(3)
    with pytest.raises(UsageError, match="0 workers"):
        runner_for(0)
    with pytest.raises(UsageError, match="--workers and --scheduler exclude"):
        runner_for(2, "tcp://127.0.0.1:1")


def test_dask_missing_is_said_with_how_to_install_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "traceviz.archive.runners.dask", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"traceviz-toolkit\[cluster\]"):
        runner_for(scheduler="tcp://127.0.0.1:1")


def children(parent):
    lists = Path(f"/proc/{parent}/task").glob("*/children")
    running = filter(is_running, [int(process) for path in lists for process in path.read_text().split()])
    return [process for process in running if b"resource_tracker" not in Path(f"/proc/{process}/cmdline").read_bytes()]


def is_running(process):
    """Return whether there is such a process that has not ended (a zombie only waits for its parent)."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(usable_cores() < 2, reason="there is one core")
def test_workers_stay_on_a_core_of_their_own_while_every_core_has_one_and_no_longer():
    seen = results(LocalRunner(usable_cores()), work.cores_after_a_moment, range(3 * usable_cores()))
    assert {len(cores) for cores in seen.values()} <= {1, usable_cores()}
    assert len({cores for cores in seen.values() if len(cores) == 1}) == usable_cores()
    assert {len(cores) for cores in results(LocalRunner(1), work.cores_after_a_moment, range(2)).values()} == {
        usable_cores()
    }
