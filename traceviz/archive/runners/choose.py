"""Choice of the runner from options, and running a function on a single argument."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from traceviz.archive.runners.base import Runner, RunnerError
from traceviz.archive.runners.local import LocalRunner
from traceviz.archive.storage.store import Store
from traceviz.core.errors import UsageError, WorkerError

T = TypeVar("T")
R = TypeVar("R")


def runner_for(
    workers: int | None = None, scheduler: str | None = None, store: Store | None = None, sources: Sequence[str] = ()
) -> Runner:
    """Return the runner for the options of a command.

    Args:
        workers: Number of processes on this machine; by default one per core.
        scheduler: Address of a Dask scheduler to use instead.
        store: The archive, which the cluster must be able to reach.
        sources: Paths and URLs to read; a cluster must see the paths.

    Raises:
        UsageError: both are given, there are no workers, or Dask is not installed.
    """
    if scheduler is None:
        if workers is not None and workers < 1:
            raise UsageError(f"{workers} workers are too few.", fix="Give --workers 1 or more.")
        return LocalRunner() if workers is None else LocalRunner(workers)
    if workers is not None:
        raise UsageError(
            "--workers and --scheduler exclude each other.", "A cluster starts its own workers.", "Leave one out."
        )
    try:
        from traceviz.archive.runners.dask import DaskRunner  # noqa: PLC0415 (Dask is an extra, and slow to load)
    except ImportError as error:
        raise UsageError(
            "Dask is not installed.", str(error), "Install it: pip install 'traceviz-toolkit[cluster]'."
        ) from None
    # Workers have their own working directories, so relative paths would resolve differently.
    return DaskRunner(scheduler, store, tuple(Path(source).absolute() for source in sources if "://" not in source))


def run_one(runner: Runner, function: Callable[[T], R], argument: T) -> R:
    """Run a function on one argument and return its result.

    Raises:
        TracevizError: the function raised this error.
        WorkerError: there is no result for another reason.
    """
    with contextlib.closing(runner.map(function, [argument])) as results:
        _, result = next(results)
    if isinstance(result, RunnerError):
        raise result.cause or WorkerError(result.message)
    return result
