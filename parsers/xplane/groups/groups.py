"""Steps of an XPlane capture: the group of every event, as xprof forms it.

A group holds a root event and its effects: the events within it on its thread, and the work of other threads and
devices for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceviz.parsers.shared.arrays.operations import NONE
from traceviz.parsers.xplane.decode.raw import Array, Space
from traceviz.parsers.xplane.groups.context import Column, is_host, roots_of
from traceviz.parsers.xplane.groups.forest import (
    EXECUTOR,
    STEP_LINES,
    Ancestry,
    Forest,
    Sheet,
    claim,
    forest_of,
    grouping_line,
    has_loop_ops,
    loop_iterations,
    root_nodes,
    sheets_of,
)

_UNNAMED = frozenset(("FunctionRun", "SessionRun", "RunGraph", EXECUTOR))
"""Roots that do not name their group."""

_FRAMEWORK = _UNNAMED | {"EagerKernelExecute", "EagerExecute"}
"""Roots that the framework sets; all others were set by the program."""

_GPU_PREFIX = "/device:GPU:"
_DERIVED_LINES = range(-559038737, -559038737 + 10_000)
"""Ids of lines that post-processing adds to a plane: 0xdeadbeef and the following numbers."""

_STEP = re.compile(r"(?<![0-9])[0-9]{1,18}+$")

_MOST_GROUPS = 1 << 48
"""Upper limit of group ids: higher ones are damage, and those of several hosts, numbered on, would not fit 64 bits."""


@dataclass(frozen=True, slots=True)
class Root:
    """An event that starts a group.

    Args:
        plane: Position of its plane in :attr:`Space.planes`.
        event: Position of the event in the columns of the plane.
        name: Its name, for example ``train``, ``FunctionRun`` or ``Profiled batch``.
        level: Its root level (``_r``); roots of a higher level come first.
    """

    plane: int
    event: int
    name: str
    level: int


@dataclass(frozen=True, slots=True)
class Group:
    """One group.

    Args:
        id: Its number, counted from 0 in each file.
        name: Its name, for example ``train 3``.
        roots: Events that start it: usually one; one per core if TPU cores step together. Empty if the file was grouped
            already and does not state them.
        step: Number of the step, if an event states it.
        explicit: True if the program marked the step (``train``, a step annotation); otherwise the group was derived
            from the framework's events (``FunctionRun``).
    """

    id: int
    name: str
    roots: tuple[Root, ...]
    step: int | None
    explicit: bool


@dataclass(frozen=True, slots=True, eq=False)
class PlaneGroups:
    """Groups of the events of one plane, one element per event.

    Args:
        group_id: Group of the event (int32, int64 if the file states it), -1 for none.
        marker: Mask of the events that mark a step (bool): explicit roots on the host.
    """

    group_id: Array
    marker: Array


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of a whole file.

    Args:
        planes: In the order of :attr:`Space.planes`.
        groups: All groups by ascending id.
        kept: True if the file was grouped already, and its groups were kept.
        added: True if step markers that are no roots for xprof start the groups.
    """

    planes: tuple[PlaneGroups, ...]
    groups: tuple[Group, ...]
    kept: bool = False
    added: bool = False


def group(space: Space) -> Groups:
    """Return groups of ``space`` exactly as xprof 2.24 forms them. A file that is grouped already keeps its groups."""
    if any("group_id" in plane.texts for plane in space.planes):
        return _kept(space)
    return _formed(space, annotations=False)


def group_with_annotations(space: Space) -> Groups:
    """Return groups as :func:`group`; if these have no step marker, use host annotations with a step number.

    Keras 3 wraps every batch in ``Profiled batch`` with a ``step_num``, but without the stat of roots. If TensorFlow
    runs a loop in a graph, xprof uses only the iterations of that loop as roots.
    """
    formed = group(space)
    if any(group.explicit for group in formed.groups):
        return formed
    added = _formed(space, annotations=True)
    return added if any(group.explicit for group in added.groups) else formed


def _formed(space: Space, *, annotations: bool) -> Groups:
    """Return groups from the events' connections; with ``annotations`` also from events with only a step number."""
    forest = forest_of(sheets_of(space))
    if has_loop_ops(space):
        return _result(forest, np.full(forest.parent.size, NONE, np.int32), ())
    forest, roots, active, every = _candidates(forest, annotations=annotations)
    claims = claim(forest, roots, None, every=every)
    place = np.arange(roots.event.size)
    claiming = (place < active) & (every | (claims.of(roots.event) == place))
    number = np.where(place < active, np.cumsum(claiming) - 1, NONE)
    groups = _groups(forest, Column(roots.event[claiming], roots.value[claiming]))
    group_id, cores = _group_cores(forest, claims.by_node(number), len(groups))
    for core_number, nodes in sorted(cores.items()):  # groups that start with the same step of each core of a TPU
        starts = tuple(_root(forest.sheets, *forest.place(node), 0) for node in nodes)
        groups.append(Group(core_number, str(core_number), starts, None, explicit=False))
    return _result(forest, group_id, tuple(groups), added=annotations)


def _candidates(forest: Forest, *, annotations: bool) -> tuple[Forest, Column, int, bool]:
    """Return the graph, roots in claiming order, how many may claim, and whether each of these does."""
    if annotations:
        nodes = [np.empty(0, np.int64)]
        for sheet in forest.sheets:
            if is_host(sheet.plane.name):  # events that state the number of a step but are not roots
                annotated = sheet.stats.column("step_num").event
                nodes.append(sheet.base + np.setdiff1d(annotated, roots_of(sheet.stats).event))
        return forest, *root_nodes(forest, np.concatenate(nodes)), False
    iterations, looped = loop_iterations(forest)
    if iterations.size:
        return looped, Column(iterations, np.zeros_like(iterations)), iterations.size, True
    return forest, *root_nodes(forest, np.empty(0, np.int64)), False


def _groups(forest: Forest, roots: Column) -> list[Group]:
    """Return the groups that ``roots`` start, in this order."""
    ancestry = Ancestry(forest)
    groups = []
    for number, (node, level) in enumerate(zip(roots.event.tolist(), roots.value.tolist(), strict=True)):
        root = _root(forest.sheets, *forest.place(node), level)
        kind = ancestry.graph_type(node) or (None if root.name in _UNNAMED else root.name)
        step = ancestry.number(node)
        label = str(number if step is None else step)
        explicit = root.name not in _FRAMEWORK
        groups.append(Group(number, label if kind is None else f"{kind} {label}", (root,), step, explicit))
    return groups


def _root(sheets: Sequence[Sheet], place: int, event: int, level: int) -> Root:
    plane = sheets[place].plane
    return Root(place, event, plane.names[plane.events.name[event]], level)


def _result(forest: Forest, group_id: Array, groups: tuple[Group, ...], *, added: bool = False) -> Groups:
    """Return groups by plane; device events without a cause on the host join a group there."""
    has_tpu = any(sheet.is_tpu for sheet in forest.sheets)
    marked = [root for group in groups for root in group.roots if root.name not in _UNNAMED]
    planes = []
    for number, sheet in enumerate(forest.sheets):
        own = group_id[sheet.base : sheet.base + len(sheet.plane.events)]
        if has_tpu and sheet.plane.name.startswith(("/device", "#Chip")):
            own = _fill_tpu(sheet, own)
        planes.append(_plane(sheet, _fill_gpu(sheet, own), [root.event for root in marked if root.plane == number]))
    return Groups(tuple(planes), groups, added=added)


def _plane(sheet: Sheet, group_id: Array, marked: Sequence[int]) -> PlaneGroups:
    marker = np.zeros(group_id.size, dtype=bool)
    marker[list(marked)] = is_host(sheet.plane.name)
    return PlaneGroups(group_id, marker)


# Device events that no event on the host caused


def _group_cores(forest: Forest, group_id: Array, first: int) -> tuple[Array, dict[int, list[int]]]:
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


def _fill_gpu(sheet: Sheet, group_id: Array) -> Array:
    """Return groups of a GPU's events; events without one join the group of the latest earlier event that has one."""
    if not sheet.plane.name.startswith(_GPU_PREFIX):
        return group_id
    derived = [number for number, line in enumerate(sheet.plane.lines) if line.id in _DERIVED_LINES]
    events = np.flatnonzero(~np.isin(sheet.plane.events.line, derived))
    order = events[np.lexsort((sheet.end[events], sheet.start[events]))]
    latest = np.maximum.accumulate(np.where(group_id[order] >= 0, np.arange(order.size), NONE))
    filled = group_id.copy()
    filled[order] = np.where(latest >= 0, group_id[order[latest]], NONE)
    return filled


def _fill_tpu(sheet: Sheet, group_id: Array) -> Array:
    """Return groups of events of a device next to a TPU: of the step, else the module, that each event overlaps first.

    If steps have groups, steps without one are ignored, and consecutive steps of one group are one step.
    """
    line = grouping_line(sheet.plane)
    if line is None:
        return group_id
    start, end, group = sheet.start[line.events], sheet.end[line.events], group_id[line.events]
    if line.name in STEP_LINES and (group >= 0).any():
        begins = np.r_[True, group[1:] != group[:-1]]
        last = np.r_[begins[1:], True]
        kept = group[begins] >= 0
        start, end, group = start[begins][kept], end[last][kept], group[begins][kept]
    place = np.searchsorted(end, sheet.start, side="left")
    inside = place < end.size
    inside[inside] &= start[place[inside]] <= sheet.end[inside]
    filled = group_id.copy()
    joins = inside & (group_id == NONE)
    if line.name in STEP_LINES:
        joins[line.events] = False
    filled[joins] = group[place[joins]]
    return filled


# Files that are grouped already


def _kept(space: Space) -> Groups:
    """Return the groups that a file states: ``group_id`` of each event, ``step_name`` of those that start a step."""
    sheets = sheets_of(space)
    planes: list[PlaneGroups] = []
    names: dict[int, str] = {}
    roots: dict[int, Root] = {}
    for number, sheet in enumerate(sheets):
        group_id = np.full(len(sheet.plane.events), NONE, np.int64)
        stated = sheet.stats.column("group_id")
        group_id[stated.event] = np.where(stated.value < _MOST_GROUPS, stated.value, NONE)
        marked = sheet.stats.texts("step_name")
        planes.append(_plane(sheet, group_id, sorted(marked)))
        names |= {int(group_id[event]): text for event, text in marked.items()}
        if is_host(sheet.plane.name):
            # Events that mark steps may start groups, then the framework's, by time
            runs = sheet.stats.named(*_FRAMEWORK)
            runs = runs[np.argsort(sheet.starts_of(runs), kind="stable")]
            for event in (event for event in (*sorted(marked), *runs.tolist()) if group_id[event] != NONE):
                roots.setdefault(int(group_id[event]), _root(sheets, number, event, 1))
    every_id = np.unique(np.concatenate([np.empty(0, np.int64), *(plane.group_id for plane in planes)]))
    groups = (_kept_group(number, names.get(number), roots.get(number)) for number in every_id.tolist() if number >= 0)
    return Groups(tuple(planes), tuple(groups), kept=True)


def _kept_group(number: int, name: str | None, root: Root | None) -> Group:
    explicit = name is not None and root is not None and root.name not in _FRAMEWORK
    step = _STEP.search(name or "") if explicit else None
    return Group(number, name or str(number), (root,) if root else (), int(step[0]) if step else None, explicit)
