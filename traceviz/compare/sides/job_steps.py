"""Steps of a job, each of which all of its ranks do together.

    rank 0   | step 0 | step 1 | step 2 |          the ranks of a job wait for one another: four ranks show
    rank 1     | step 0 | step 1 | step 2 |        the same step four times, and not four steps

Counting the steps of each rank would make a job of four ranks look four times as certain as it is. The step of the
job is the mean of its ranks, so that the classes of the ranks add up to it. Those of the slowest rank would not: it is
another rank in every step. Ranks that keep pace have the same mean over many steps as the slowest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]
Index = npt.NDArray[np.intp]


def job_steps(process: Whole, step: Whole) -> Index:
    """The step of the job that each row belongs to, numbered from 0 in the order in which they begin.

    Rows of several processes with the same number are one step. Where a number comes again in one process (a second
    epoch), its second occurrences are one step. Where processes share hardly any numbers, their n-th steps are one.

    Args:
        process: Of every row; rows of a process are in order.
        step: Number of the step of every row.
    """
    if np.unique(process).size < 2:
        return np.arange(process.size)
    by_number = _same(step, _occurrence(process, step))
    most = int(np.unique(process, return_counts=True)[1].max())
    if by_number.max() + 1 - most <= (process.size - most) / 2:
        return by_number
    return _same(_occurrence(process, np.zeros_like(process)), np.zeros_like(process))


def _occurrence(process: Whole, number: Whole) -> Whole:
    """How many rows of the same process and number come before each row."""
    order = np.lexsort((np.arange(process.size), number, process))
    keys = np.stack([process[order], number[order]])
    begins = np.flatnonzero(np.r_[True, (np.diff(keys, axis=1) != 0).any(axis=0)])
    within = np.arange(process.size) - np.repeat(begins, np.diff(np.r_[begins, process.size]))
    occurrence = np.empty(process.size, np.int64)
    occurrence[order] = within
    return occurrence


def _same(number: Whole, occurrence: Whole) -> Index:
    """A number for every pair, in the order in which they first come."""
    keys = np.stack([number, occurrence], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    place = np.empty(first.size, np.intp)
    place[np.argsort(first)] = np.arange(first.size)
    return place[inverse.reshape(-1)]


def of_the_job(rows: npt.NDArray[np.int64], job: Index) -> npt.NDArray[np.int64 | np.float64]:
    """Mean over the ranks of every step of the job.

    Args:
        rows: A row for every step of every rank: durations, or columns of them.
        job: The step of the job that each belongs to.

    Returns:
        The rows themselves where each is a step of its own; else their means, which need not be whole.
    """
    counts = np.bincount(job)
    if counts.size == len(rows):
        return rows
    sums = np.zeros((counts.size, *rows.shape[1:]), np.int64)
    np.add.at(sums, job, rows)
    return sums / counts.reshape(-1, *(1,) * (rows.ndim - 1))
