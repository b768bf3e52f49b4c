"""Functions that the runners' tests let others run: in a module, so that processes find them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from traceviz.core.errors import OutputError


def doubled(number):
    return 2 * number


def cores_after_a_moment(number):
    time.sleep(0.1)  # so that no worker does it all
    return tuple(sorted(os.sched_getaffinity(0)))


def process_id(number):
    return os.getpid()


def fails_on_odd(number):
    if number % 2:
        raise OutputError(f"{number} is odd.", "It was asked for.", "Ask for another.")
    return number


def divides(number):
    return 12 // number


def dies_on_13(number):
    if number == 13:
        os.kill(os.getpid(), signal.SIGSEGV)
    return number


def dies_the_first_time(path):
    """Kill the process, unless it was done before."""
    mark = Path(path)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return mark.name


def threads_of_polars(number):
    import polars as pl

    return pl.thread_pool_size()


def waits_for_a_program(path):
    """Write the ids of this process and of a program that would run for a minute, and wait for it."""
    with subprocess.Popen(["sleep", "60"]) as program:
        temporary = Path(f"{path}.new")
        temporary.write_text(f"{os.getpid()} {program.pid}")
        temporary.rename(path)
        try:
            program.wait()
        finally:
            program.kill()


def slow(path_and_number):
    """Wait until there is such a file, and return the number."""
    path, number = path_and_number
    deadline = time.monotonic() + 60
    while not Path(path).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return number


def waits_for_all(folder_count_and_name):
    """Wait until so many are here at once, and return the id of this process."""
    folder, count, name = folder_count_and_name
    Path(folder, name).touch()
    deadline = time.monotonic() + 60
    while len(list(Path(folder).iterdir())) < count and time.monotonic() < deadline:
        time.sleep(0.02)
    return os.getpid()


if __name__ == "__main__":  # a program that is interrupted: python -m tests.archive.work FILE
    from traceviz.archive.runners.local import LocalRunner

    for _ in LocalRunner(2).map(waits_for_a_program, [f"{sys.argv[1]}.0", f"{sys.argv[1]}.1"]):
        pass
