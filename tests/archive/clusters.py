"""A Dask cluster of this machine as people start one: a scheduler and workers, each a process of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.conftest import REPOSITORY

PATIENCE_S = 60
ALLOWED_FAILURES = "1"
"""After the second worker that dies of it, a task is given up."""


@contextlib.contextmanager
def dask_cluster(folder, workers=2, environment=None):
    """Yield the address of a scheduler with so many single-threaded workers; each is restarted when it dies."""
    variables = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": ALLOWED_FAILURES,
    }
    variables |= {"DASK_TEMPORARY_DIRECTORY": str(folder), **(environment or {})}
    address_file = Path(folder, "scheduler.json")
    commands = [["dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", address_file]]
    commands += [["dask_worker", "--scheduler-file", address_file, "--nthreads", "1", "--nworkers", str(workers)]]
    commands[1] += ["--host", "127.0.0.1"]
    started = []
    try:
        for command in commands if workers else commands[:1]:
            started.append(started_program(command, folder, variables))
            wait_until(address_file.exists)
        yield address_of(address_file)
    finally:
        for program in reversed(started):  # workers may be at work: they would not end soon
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()


def started_program(command, folder, environment):
    name, *options = command
    with Path(folder, f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{name}", *options, "--no-dashboard"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def address_of(file):
    import json

    return json.loads(file.read_text())["address"]


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
