"""NumPy versions of the compiled functions over arrays, with the same arguments and results: see ``_compiled.pyi``.

They run if the package was built without a C compiler, and on rows that a compiled function declines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer[Any]]
Flags = npt.NDArray[np.uint8]
Bounds = tuple[Array, Array]

IN_ORDER, ORDERED = 0, 1

# Sets of times: starts and ends, sorted, disjoint, not touching, none empty -------------------------------------------


def merge(begin: Array, finish: Array, starts: Array, ends: Array) -> int:
    """Write the union of intervals; return -1 if they are not in order of their starts."""
    if np.any(begin[1:] < begin[:-1]):
        return -1
    return _written(_merged(begin, finish), starts, ends)


def unite(*columns: Array) -> int:
    """Write the members of either of two sets."""
    one_starts, one_ends, other_starts, other_ends, starts, ends = columns
    united = _merged(np.concatenate([one_starts, other_starts]), np.concatenate([one_ends, other_ends]))
    return _written(united, starts, ends)


def intersect(*columns: Array) -> int:
    """Write the members of both of two sets."""
    one_starts, one_ends, other_starts, other_ends, starts, ends = columns
    return _written(_at_least(2, [one_starts, other_starts], [one_ends, other_ends]), starts, ends)


def subtract(*columns: Array) -> int:
    """Write the members of the first of two sets that are not in the other."""
    one_starts, one_ends, other_starts, other_ends, starts, ends = columns
    return _written(_at_least(1, [one_starts, other_ends], [one_ends, other_starts]), starts, ends)


def concurrent(begin: Array, finish: Array, starts: Array, ends: Array, at_least: int) -> int:
    """Write the times at which ``at_least`` or more intervals run."""
    return _written(_at_least(at_least, [begin], [finish]), starts, ends)


def ended(ends: Array, moments: Array, counts: Array) -> None:
    """Count the members that have ended by each moment."""
    counts[:] = np.searchsorted(ends, moments, side="right")


def before(starts: Array, ends: Array, done: Array, moments: Array, spent: Array) -> None:
    """Write the time of a set before each moment."""
    index = np.searchsorted(ends, moments, side="right")
    begins = np.append(starts, np.iinfo(np.int64).max)[index]
    spent[:] = done[index] + (np.maximum(moments, begins) - begins)


def shared(starts: Array, ends: Array, done: Array, begin: Array, finish: Array, common: Array) -> None:  # noqa: PLR0917
    """Write the time that each interval has in common with a set."""
    until = np.empty_like(common)
    before(starts, ends, done, begin, until)
    before(starts, ends, done, np.maximum(begin, finish), common)
    common -= until


def weigh(starts: Array, ends: Array, begin: Array, finish: Array, loads: Array, full: int) -> float:  # noqa: PLR0917
    """Return the time of a set, weighted by the loads that run, at most ``full``."""
    times, steps = np.concatenate([begin, np.maximum(begin, finish)]), np.concatenate([loads, -loads])
    order = np.argsort(times, kind="stable")
    running = np.minimum(np.cumsum(steps[order])[:-1], full)
    common = np.empty(running.size, np.int64)
    done = np.concatenate([[0], np.cumsum(ends - starts)])
    shared(starts, ends, done, times[order][:-1], times[order][1:], common)
    return float((common * running.astype(np.float64)).sum())


def _merged(begin: Array, finish: Array) -> Bounds:
    keep = finish > begin
    begin, finish = begin[keep], finish[keep]
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(finish[order])
    heads = np.flatnonzero(np.append(True, begin[1:] > reach[:-1])[: begin.size])
    return begin[heads], reach[np.append(heads[1:] - 1, begin.size - 1)[: heads.size]]


def _at_least(count: int, starts: list[Array], ends: list[Array]) -> Bounds:
    """Return the times at which ``count`` or more intervals run."""
    begins, times = sum(map(len, starts)), np.concatenate([*starts, *ends])
    order = np.argsort(times, kind="stable")
    times, busy = times[order], np.cumsum(np.where(order < begins, 1, -1)) >= count
    return _merged(times[:-1][busy[:-1]], times[1:][busy[:-1]])


def _written(bounds: Bounds, starts: Array, ends: Array) -> int:
    count = bounds[0].size
    starts[:count], ends[:count] = bounds
    return count


# Groups of rows -------------------------------------------------------------------------------------------------------


def add_by(codes: Rows, *columns: Array) -> None:
    """Add values, or one per row, to the totals of their groups."""
    *values, totals = columns
    np.add.at(totals, codes, values[0] if values else 1)


def squares(values: Array, begins: Array, means: npt.NDArray[np.float64], sums: npt.NDArray[np.float64]) -> None:
    """Add up the squared deviations of the values of each group from its mean."""
    counts = np.diff(begins)
    if (some := np.flatnonzero(counts)).size:
        off = values - np.repeat(means[some], counts[some])
        sums[some] = np.add.reduceat(off * off, begins[some])


def alike(columns: tuple[Rows, ...], group: Rows, first: Rows) -> int:
    """Number the groups of equal rows in order of appearance."""
    _, firsts, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    number = np.empty(order.size, np.int32)
    number[order] = np.arange(order.size, dtype=np.int32)
    group[:], first[: order.size] = number[inverse.ravel()], firsts[order]
    return int(order.size)


def match(  # noqa: PLR0917 (columns)
    owners: Rows,
    ids: Array,
    known: Flags,
    among_owners: Rows,
    among_ids: Array,
    among_known: Flags,
    distinct: Rows,
    least: int,
    width: int,
    row: Rows,
    found: Rows,
) -> None:
    """Write the first row with the same owner and id; -1 for none."""

    def places(owners: Rows, ids: Array, known: Flags) -> Array:
        """Return places in ``row``, id by id within each owner; -1 for rows without a pair or a partner."""
        owner = np.minimum(np.searchsorted(distinct, owners), distinct.size - 1)
        inside = (distinct[owner] == owners) & (ids >= least) & (ids <= least + (width - 1))
        inside &= known.view(np.bool_) if known.size else True
        return np.where(inside, owner * width + (ids - least), -1)

    row[:] = -1
    place = places(among_owners, among_ids, among_known)
    rows = np.flatnonzero(place >= 0)[::-1]  # of equal places the last write stays: the first row
    row[place[rows]] = rows
    place = places(owners, ids, known)
    found[:] = np.where(place >= 0, row[place], -1)


# Calls that nest on their threads: rows in order of group and start, the longer first ---------------------------------


def nest(  # noqa: PLR0917 (columns)
    groups: Array,
    starts: Array,
    ends: Array,
    cross: bool,  # noqa: FBT001
    depth: Rows,
    parent: Rows,
) -> bool:
    """Write depth and parent of calls; return false if they come in another order, or cross without ``cross``."""
    later = (starts[1:] > starts[:-1]) | ((starts[1:] == starts[:-1]) & (ends[1:] <= ends[:-1]))
    if not np.all((groups[1:] > groups[:-1]) | ((groups[1:] == groups[:-1]) & later)):
        return False
    depth[:], parent[:] = _depths(groups, starts, ends), -1
    for level in range(1, int(depth.max(initial=0)) + 1):  # once per depth, not per call
        children, candidates = np.flatnonzero(depth == level), np.flatnonzero(depth == level - 1)
        parent[children] = candidates[np.searchsorted(candidates, children) - 1]
    inside = np.flatnonzero(parent >= 0)
    return cross or not np.any(ends[inside] > ends[parent[inside]])


def _depths(groups: Array, starts: Array, ends: Array) -> Array:
    """Count the calls around each one.

    Depth = calls before it - calls that ended by its start, both counted over this and all earlier groups. Times are
    replaced by their ranks, so that (group, time) fits one sortable integer for any clock.
    """
    count = starts.size
    lasting = np.maximum(ends, starts + 1)  # an instant must not end before it has started
    _, rank = np.unique(np.concatenate([starts, lasting]), return_inverse=True)
    _, dense = np.unique(groups, return_inverse=True)
    begins, finished = dense * (2 * count) + rank[:count], np.sort(dense * (2 * count) + rank[count:])
    open_calls = np.arange(count) - np.searchsorted(finished, begins, side="right")
    return np.asarray(np.maximum(open_calls, 0), np.int64)  # an instant at the end of 64 bits ends when it starts


def nearest(parent: Rows, wanted: Flags, found: Rows) -> bool:
    """Write the innermost wanted call that is each call, or is around it; -1 for none."""
    selected = wanted.view(np.bool_)
    found[:] = np.where(selected, np.arange(parent.size), -1)
    climbing = np.flatnonzero(~selected & (parent >= 0))
    above = parent[climbing]
    while climbing.size:  # at most once per depth
        done = selected[above]
        found[climbing[done]] = above[done]
        above, climbing = parent[above[~done]], climbing[~done]
        inside = above >= 0
        above, climbing = above[inside], climbing[inside]
    return True


def topmost(parent: Rows, wanted: Flags, found: Rows) -> bool:
    """Write the outermost wanted call that is each call, or is around it; -1 for none."""
    nearest(parent, wanted, found)
    around = np.where(parent >= 0, found[parent], -1)
    return nearest(parent, (wanted.view(np.bool_) & (around < 0)).view(np.uint8), found)


def contexts(parent: Rows, codes: Rows, context: Rows, first: Rows) -> int:
    """Number the contexts of calls. Calls share one if they and all calls around them have the same codes."""
    number = np.full(parent.size, -1, np.int32)
    rows, count = np.flatnonzero(parent < 0), 0
    group, firsts = np.empty_like(context), np.empty_like(context)
    while rows.size:  # once per depth
        around = np.where(parent[rows] >= 0, number[parent[rows]], -1)
        new = alike((around, codes[rows]), group[: rows.size], firsts[: rows.size])
        number[rows] = count + group[: rows.size]
        count += new
        is_last = np.zeros(parent.size, dtype=bool)
        is_last[rows] = True
        rows = np.flatnonzero((parent >= 0) & is_last[parent])
    return alike((number,), context, first)


def add_own(  # noqa: PLR0917 (columns)
    first: int, parent: Rows, time: Array, counted: Flags, owners: Rows, total: Array
) -> int:
    """Add the time of counted calls without the calls directly in them; return the sum."""
    inside = parent >= 0
    alone = time.copy()
    np.subtract.at(alone, parent[inside] - first, time[inside])
    alone[~counted.view(np.bool_)] = 0
    np.add.at(total, owners if owners.size else np.arange(first, first + parent.size), alone)
    return int(alone.sum())


def order(groups: Array, starts: Array, ends: Array, ties: Array, ordered: Rows) -> int:
    """Write rows in order of group, start, falling end and tie; return :data:`IN_ORDER` if they already come so.

    Rows mostly come by start, as profilers write them. So each group is collected, and only rows that start together
    are
    compared.
    """
    rows = np.argsort(groups, kind="stable") if np.any(groups[1:] < groups[:-1]) else np.arange(groups.size)
    group, start, end, tie = groups[rows], starts[rows], ends[rows], ties[rows]
    same = group[1:] == group[:-1]
    if np.any(same & (start[1:] < start[:-1])):
        ordered[:] = np.lexsort((ties, -ends, starts, groups))
        return ORDERED
    first = np.flatnonzero(same & (start[1:] == start[:-1]))
    if np.any((end[first + 1] > end[first]) | ((end[first + 1] == end[first]) & (tie[first + 1] < tie[first]))):
        tied = np.unique(np.concatenate([first, first + 1]))
        rows[tied] = rows[tied][np.lexsort((tie[tied], -end[tied], start[tied], group[tied]))]
    ordered[:] = rows
    return int(np.any(rows[1:] < rows[:-1]))


def outer(groups: Array, ends: Array, codes: Rows, _count: int, found: Flags) -> None:
    """Mark calls that lie in no other call of their group with the same code."""
    rows = np.lexsort((codes, groups))
    parts = np.flatnonzero((np.diff(groups[rows]) != 0) | (np.diff(codes[rows]) != 0)) + 1
    for part in np.split(rows, parts):  # once per code
        found[part] = ends[part] > np.concatenate([ends[part][:1] - 1, np.maximum.accumulate(ends[part])[:-1]])


def innermost(  # noqa: PLR0917 (columns)
    groups: Array,
    starts: Array,
    ends: Array,
    depth: Rows,
    parent: Rows,
    wanted: Flags,
    begins: Array,
    finishes: Array,
    owners: Rows,
) -> int:
    """Write the intervals in which each call is innermost or, if calls cross, started last."""
    crosses = depth.size > 0
    depth = depth if crosses else _depths(groups, starts, ends)
    lasting = np.flatnonzero(ends > starts)
    times = np.concatenate([starts[lasting], ends[lasting]])
    owner, group = np.concatenate([lasting, parent[lasting]]), np.tile(groups[lasting], 2)
    inner_last = np.concatenate([depth[lasting], -depth[lasting]])  # last: the inner start, the outer end
    rows = np.lexsort((inner_last, np.repeat([1, 0], lasting.size), times, group))
    times, owner, group = times[rows], owner[rows], group[rows]
    is_long = (times[1:] > times[:-1]) & (group[1:] == group[:-1])
    begin, finish, owner, group = times[:-1][is_long], times[1:][is_long], owner[:-1][is_long], group[:-1][is_long]
    row = np.maximum(owner, 0)
    is_running = (owner >= 0) & (starts[row] <= begin) & (ends[row] >= finish) if starts.size else owner >= 0
    if crosses and not is_running.all():
        others = np.empty(int((~is_running).sum()), np.int32)
        running(groups, starts, ends, parent, group[~is_running], begin[~is_running], others)
        owner[~is_running] = others
    known = owner >= 0
    known &= wanted.view(np.bool_)[owner] if wanted.size else True
    count = int(known.sum())
    begins[:count], finishes[:count], owners[:count] = begin[known], finish[known], owner[known]
    return count


def running(  # noqa: PLR0917 (columns)
    groups: Array, starts: Array, ends: Array, parent: Rows, keys: Array, moments: Array, found: Rows
) -> None:
    """Write the innermost call that runs in a group at each moment; -1 for none."""
    found[:] = -1
    if not starts.size or not keys.size:
        return
    _, group = np.unique(np.concatenate([groups, keys]), return_inverse=True)
    _, rank = np.unique(np.concatenate([starts, moments]), return_inverse=True)
    key = group.astype(np.int64) * (rank.size + 1) + rank  # one integer for each pair, with the same order
    row = np.searchsorted(key[: starts.size], key[starts.size :], side="right") - 1  # the last that started by then
    row = np.where((row >= 0) & (groups[row] == keys), row, -1)
    while (over := (row >= 0) & (ends[row] <= moments)).any():  # at most once per depth
        row[over] = parent[row[over]]
    found[:] = row


def add(  # noqa: PLR0917 (columns)
    opens: Array, closes: Array, done: Array, starts: Array, ends: Array, owners: Rows, total: Array
) -> None:
    """Add the time of a set within each interval to the total of its owner, if it has one."""
    common = np.empty(starts.size, np.int64)
    shared(opens, closes, done, starts, ends, common)
    owned = owners >= 0
    np.add.at(total, owners[owned], common[owned])


# Rows that nearly come by time ----------------------------------------------------------------------------------------


def order_times(times: Array, ordered: Rows) -> int:
    """Write rows in order of time; return the largest distance of a row from its place."""
    ordered[:] = np.argsort(times, kind="stable")
    return int(np.abs(ordered - np.arange(times.size)).max(initial=0))


def move(ordered: Rows, _width: int, _distance: int, column: npt.NDArray[Any]) -> None:
    """Put the rows of a column in order."""
    column[:] = column[ordered]
