"""Samples of a host from literals, on a machine of eight cores, and what the analysis of the host makes of them."""

from tests.analyses.builders import trace
from traceviz.analyses.host.resources import HostResourcesAnalysis
from traceviz.report import Facts

SECOND = 10**9
ANALYSIS = HostResourcesAnalysis()
EIGHT = {"machine.cores": "8", "machine.physical_cores": "4", "machine.memory_bytes": str(16 << 30)}


def series(metric, values, unit="count", every_ns=SECOND, **extra):
    """Return samples of one metric, the first after one interval."""
    more = {"unit": unit, "device_id": None, **extra}
    return [(number * every_ns, metric, float(value), more) for number, value in enumerate(values, 1)]


def percent(metric, *values):
    return series(metric, values, "%")


def recorded(*samples, settings=None, steps=(), **literals):
    """Return a trace of samples, with steps given as literals ``start, duration`` in seconds."""
    rows = [(round(begin * SECOND), round(length * SECOND), number) for number, (begin, length) in enumerate(steps)]
    more = {"steps": rows} if rows else {}
    return trace(
        samples=[row for part in samples for row in part],
        settings=list({**EIGHT, **(settings or {})}.items()),
        **more,
        **literals,
    )


TEN_STEPS = tuple((number, 1) for number in range(10))


def findings(view):
    return ANALYSIS.judge(ANALYSIS.run(view))


def finding_codes(view):
    return [finding.code for finding in findings(view)]


def evidence(finding):
    return {fact.key: fact.value for fact in finding.evidence}


def facts(view):
    blocks = ANALYSIS.describe(ANALYSIS.run(view)).blocks
    return {fact.key: fact.value for block in blocks if isinstance(block, Facts) for fact in block.facts}
