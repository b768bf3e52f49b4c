"""All flame graphs of a trace."""

from __future__ import annotations

from traceviz.analyses.derived.view import TraceView
from traceviz.flame.division import division
from traceviz.flame.folding import Bounds
from traceviz.flame.modules import module_flames
from traceviz.flame.operators import operator_flames
from traceviz.flame.ranges import range_flames
from traceviz.flame.stacks import stack_flames
from traceviz.pictures.flame import Flame

_MAKERS = (operator_flames, module_flames, range_flames, stack_flames)


def flames(trace: TraceView, bounds: Bounds | None = None) -> tuple[Flame, ...]:
    """Flame graphs of operators, modules, NVTX ranges and Python stacks, as far as the trace has them.

    Time is that of steady steps, where there are some, and divided by the class of step time that the rank is in
    meanwhile. Host time is what a call takes on its thread, with all in it; device time is the work that was launched
    within, also where it runs later.

    Args:
        trace: The trace.
        bounds: How small and how many nodes may be.
    """
    time, limits = division(trace), bounds or Bounds()
    return tuple(flame for make in _MAKERS for flame in make(trace, time, limits) if flame is not None)
