"""All flame graphs of a trace."""

from __future__ import annotations

from traceviz.analyses.derived.view import TraceView
from traceviz.pictures.flame.division import division
from traceviz.pictures.flame.folding import Bounds
from traceviz.pictures.flame.modules import module_flames
from traceviz.pictures.flame.operators import operator_flames
from traceviz.pictures.flame.ranges import range_flames
from traceviz.pictures.flame.stacks import stack_flames
from traceviz.report.pictures.flame import Flame

_MAKERS = (operator_flames, module_flames, range_flames, stack_flames)
_MOST_TOGETHER = 5000
"""Limit of the nodes of all graphs of a page. A node takes about 35 bytes, or 170 with a long name of its own."""


def flames(trace: TraceView, bounds: Bounds | None = None) -> tuple[Flame, ...]:
    """Draw flame graphs of operators, modules, NVTX ranges and Python stacks, as far as the trace has them.

    Graphs show the time of steady steps, if there are any, divided by the rank's class of step time. Host time is the
    inclusive time of a call on its thread. Device time is the work launched within a call, even if it runs later.

    Args:
        trace: The trace.
        bounds: Limits for the size and number of nodes; by default limits that suit a page.
    """
    found = _drawn(trace, bounds or Bounds())
    if bounds is None and sum(len(flame.names) for flame in found) > _MOST_TOGETHER:
        return _drawn(trace, Bounds(most=_MOST_TOGETHER // len(found)))
    return found


def _drawn(trace: TraceView, bounds: Bounds) -> tuple[Flame, ...]:
    time = division(trace)
    return tuple(flame for make in _MAKERS for flame in make(trace, time, bounds) if flame is not None)
