"""Steps in the classes of another tool, whichever it is."""

from __future__ import annotations

from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.options import OURS
from traceviz.analyses.steps.bases import kineto, xprof
from traceviz.analyses.steps.bases.kineto import KINETO, KinetoSteps, kineto_steps
from traceviz.analyses.steps.bases.kineto_section import kineto_blocks
from traceviz.analyses.steps.bases.section import BasisSteps
from traceviz.analyses.steps.bases.xprof import XPROF_RULES, XprofRules, XprofSteps, xprof_steps
from traceviz.analyses.steps.bases.xprof_section import xprof_blocks
from traceviz.report import Block


def steps_by(basis: str, trace: TraceView) -> BasisSteps | str:
    """The steps of a trace as ``basis`` breaks them down, or why it cannot."""
    return _by_xprof(trace, XPROF_RULES[basis]) if basis in XPROF_RULES else _by_kineto(trace)


def _by_xprof(trace: TraceView, rules: XprofRules) -> XprofSteps | str:
    if reason := xprof.unusable(trace, rules):
        return reason
    steps = xprof_steps(trace, rules)
    if not steps.count:
        return f"{rules.name} finds no steps and says: “{xprof.NO_STEPS}” Use --basis {OURS}"
    return steps


def _by_kineto(trace: TraceView) -> KinetoSteps | str:
    if reason := kineto.unusable(trace):
        return reason
    steps = kineto_steps(trace)
    return steps if steps.count else f"{KINETO} finds neither steps nor operators"


def blocks_of(steps: BasisSteps) -> tuple[Block, ...]:
    """What the report shows of them."""
    if isinstance(steps, KinetoSteps):
        return kineto_blocks(steps)
    assert isinstance(steps, XprofSteps)
    return xprof_blocks(steps)
