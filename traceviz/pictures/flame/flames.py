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
"""Nodes of all graphs of a page: one takes some 35 bytes of it, and with long names of its own 170."""


def flames(trace: TraceView, bounds: Bounds | None = None) -> tuple[Flame, ...]:
    """Flame graphs of operators, modules, NVTX ranges and Python stacks, as far as the trace has them.

    Time is that of steady steps, where there are some, and divided by the class of step time that the rank is in
    meanwhile. Host time is what a call takes on its thread, with all in it; device time is the work that was launched
    within, also where it runs later.

    Args:
        trace: The trace.
        bounds: How small and how many nodes may be; where not given, as suits a page.
    """
    found = _drawn(trace, bounds or Bounds())
    if bounds is None and sum(len(flame.names) for flame in found) > _MOST_TOGETHER:
        return _drawn(trace, Bounds(most=_MOST_TOGETHER // len(found)))
    return found


def _drawn(trace: TraceView, bounds: Bounds) -> tuple[Flame, ...]:
    time = division(trace)
    return tuple(flame for make in _MAKERS for flame in make(trace, time, bounds) if flame is not None)
