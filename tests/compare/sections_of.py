"""Sections of reports for comparisons, as the analyses make them, from a few literals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.compare.sides_of import report
from traceviz.compare.sides.sides import Side
from traceviz.core.units import Value
from traceviz.report import Block, Column, Fact, Facts, Finding, Grid, Report, Section, Severity

STEADY = "In steady steps"


def section(slug: str, *blocks: Block) -> Section:
    return Section(slug, slug, blocks)


def facts(**values: Value) -> Facts:
    return Facts(tuple(Fact(key, key, value) for key, value in values.items()))


def table(title: str, names: str, *rows: Sequence[Value]) -> Grid:
    return Grid(tuple(Column(name, name) for name in names.split()), tuple(map(tuple, rows)), title)


def kernels(*rows: Sequence[Value], shapes: Sequence[Sequence[Value]] = ()) -> Section:
    """Return rows of name, family, calls and total; shapes of name, grid, block and total."""
    launches = table("By launch shape", "name grid block total_ns", *shapes)
    return section("kernels", table(STEADY, "name family calls total_ns", *rows), launches)


def steps_of(source: str, marker: str = "step") -> Section:
    return section("steps", facts(source=source, marker=marker))


def tagged(**tags: str) -> Section:
    return section("run", Facts(tuple(Fact(f"tag.{key}", key, value) for key, value in tags.items())))


def measures(
    outcome: str | None = None, reason: str | None = None, **values: Value | tuple[float, float, float]
) -> Section:
    """Return measures of a whole run, with units by the ends of their keys; three numbers contain an interval."""
    rows = []
    for key, value in values.items():
        figure, low, high = value if isinstance(value, Sequence) else (value, None, None)
        unit = next((unit for end, unit in _UNITS.items() if key.endswith(end)), "number")
        better = "" if key in {"epochs", "steps"} else "higher" if key == "samples_per_second" else "lower"
        rows.append((key, key, figure, unit, better, None, low, high, ""))
    return section(
        "measures",
        facts(outcome=outcome, reason=reason),
        table("measures", "key label value unit better count low high about", *rows),
    )


_UNITS = {"_ns": "ns", "per_second": "per_second", "_bytes": "bytes", "epochs": "count", "steps": "count"}


def parts(**times_ns: int) -> Section:
    """Return exclusive parts of a whole run."""
    rows = ((key, key, time, time / sum(times_ns.values()), None) for key, time in times_ns.items())
    return section("whole_run", table("", "part label time_ns share_of_run where", *rows))


def finding(code: str, cost_ns: int, share: float, severity: Severity, share_of: str = "steady step time") -> Finding:
    return Finding(code, code.lower(), severity, f"{code} costs {cost_ns}", (), (), cost_ns, share, share_of)


def run(
    steps: int,
    *sections: Section,
    findings: Sequence[Finding] = (),
    about: Mapping[str, Value] | None = None,
    **classes: Sequence[int],
) -> Report:
    """Return a report of so many steps of 1,000 ns, with these sections, findings and facts about the run."""
    plain = report([1000] * steps, **classes)
    own = tuple(Fact(key, key, value) for key, value in (about or {}).items())
    return replace(plain, run=own, sections=(*plain.sections, *sections), findings=tuple(findings))


def side(label: str, *runs: Report) -> Side:
    return Side(label, runs)
