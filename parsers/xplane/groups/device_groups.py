"""Groups of device events that no event on the host caused."""

from __future__ import annotations

import numpy as np

from traceviz.parsers.shared.arrays.operations import NONE
from traceviz.parsers.xplane.decode.raw import Array, Line
from traceviz.parsers.xplane.groups.context import Column
from traceviz.parsers.xplane.groups.forest import STEP_LINES, Forest, Sheet, claim, grouping_line

GPU_PREFIX = "/device:GPU:"
DERIVED_LINES = range(-559038737, -559038737 + 10_000)
"""Ids of lines that post-processing adds to a plane: 0xdeadbeef and the following numbers."""


def in_lock_step(forest: Forest, group_id: Array, first: int) -> tuple[Array, dict[int, list[int]]]:
    """Return groups of TPU cores if no host event caused any: the n-th event of each core is one group.

    Args:
        forest: The graph.
        group_id: Groups of the nodes so far (int32).
        first: The first free group id.

    Returns:
        Groups of the nodes, and the first nodes of each new group.
    """
    cores = [core for core in forest.cores if core.size]
    if not cores or any((group_id[core] != NONE).any() for core in cores):
        return group_id, {}
    nodes = np.concatenate(cores)
    claims = claim(forest, Column(nodes, np.zeros_like(nodes)), group_id != NONE, every=True)
    claims_itself = claims.of(nodes) == np.arange(nodes.size)
    by_core = np.split(claims_itself, np.cumsum([core.size for core in cores])[:-1])
    number = np.concatenate([first + np.cumsum(claiming) - 1 for claiming in by_core])
    beginnings: dict[int, list[int]] = {}
    for node, group in zip(nodes[claims_itself].tolist(), number[claims_itself].tolist(), strict=True):
        beginnings.setdefault(group, []).append(node)
    joined = claims.by_node(number)
    return np.where(joined >= 0, joined, group_id), beginnings


def fill_gpu(sheet: Sheet, group_id: Array) -> Array:
    """Return groups of a GPU's events; events without one join the group of the latest earlier event that has one."""
    if not sheet.plane.name.startswith(GPU_PREFIX):
        return group_id
    derived = [number for number, line in enumerate(sheet.plane.lines) if line.id in DERIVED_LINES]
    events = np.flatnonzero(~np.isin(sheet.plane.events.line, derived))
    order = events[np.lexsort((sheet.end[events], sheet.start[events]))]
    latest = np.maximum.accumulate(np.where(group_id[order] >= 0, np.arange(order.size), NONE))
    filled = group_id.copy()
    filled[order] = np.where(latest >= 0, group_id[order[latest]], NONE)
    return filled


def fill_tpu(sheet: Sheet, group_id: Array) -> Array:
    """Return groups of events of a device next to a TPU: of the step, else the module, that each event overlaps first.

    If steps have groups, steps without one are ignored, and consecutive steps of one group are one step.
    """
    line = grouping_line(sheet.plane)
    if line is None:
        return group_id
    start, end, group = _spans(sheet, line, group_id[line.events])
    place = np.searchsorted(end, sheet.start, side="left")
    inside = place < end.size
    inside[inside] &= start[place[inside]] <= sheet.end[inside]
    filled = group_id.copy()
    joins = inside & (group_id == NONE)
    if line.name in STEP_LINES:
        joins[line.events] = False
    filled[joins] = group[place[joins]]
    return filled


def _spans(sheet: Sheet, line: Line, group: Array) -> tuple[Array, Array, Array]:
    start, end = sheet.start[line.events], sheet.end[line.events]
    if line.name not in STEP_LINES or not (group >= 0).any():
        return start, end, group
    begins = np.r_[True, group[1:] != group[:-1]]
    last = np.r_[begins[1:], True]
    kept = group[begins] >= 0
    return start[begins][kept], end[last][kept], group[begins][kept]
