"""Steps in the classes of another tool."""

from __future__ import annotations

from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.options import OURS
from traceviz.analyses.steps.bases import kineto, xprof
from traceviz.analyses.steps.bases.kineto import KINETO, KinetoSteps, kineto_steps
from traceviz.analyses.steps.bases.kineto_section import kineto_blocks
from traceviz.analyses.steps.bases.section import BasisSteps
from traceviz.analyses.steps.bases.xprof import XPROF_RULES, XprofSteps, xprof_steps
from traceviz.analyses.steps.bases.xprof_section import xprof_blocks
from traceviz.report import Block


def steps_by(basis: str, trace: TraceView) -> BasisSteps | str:
    """Return the steps of a trace by the classes of ``basis``, or the reason why that is impossible."""
    rules = XPROF_RULES.get(basis)
    if rules is None:
        nothing = f"{KINETO} finds neither steps nor operators"
        return kineto.unusable(trace) or _if_any(kineto_steps(trace), nothing)
    nothing = f"{rules.name} finds no steps and says: “{xprof.NO_STEPS}” Use --basis {OURS}"
    return xprof.unusable(trace, rules) or _if_any(xprof_steps(trace, rules), nothing)


def _if_any(steps: BasisSteps, nothing: str) -> BasisSteps | str:
    return steps if steps.count else nothing


def blocks_of(steps: BasisSteps) -> tuple[Block, ...]:
    """Return the blocks of the report about them."""
    if isinstance(steps, KinetoSteps):
        return kineto_blocks(steps)
    assert isinstance(steps, XprofSteps)
    return xprof_blocks(steps)
