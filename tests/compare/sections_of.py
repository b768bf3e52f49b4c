"""Sections of reports for comparisons, as the analyses make them, from a few literals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.compare.sides_of import report
from traceviz.compare.sides.sides import Side
from traceviz.report import Column, Fact, Facts, Finding, Grid, Report, Section, Severity
from traceviz.units import Value

STEADY = "In steady steps"


def section(slug: str, *blocks: Facts | Grid) -> Section:
    return Section(slug, slug, blocks)


def facts(**values: Value) -> Facts:
    return Facts(tuple(Fact(key, key, value) for key, value in values.items()))


def table(title: str, names: str, *rows: Sequence[Value]) -> Grid:
    return Grid(tuple(Column(name, name) for name in names.split()), tuple(map(tuple, rows)), title)


def kernels(*rows: Sequence[Value], shapes: Sequence[Sequence[Value]] = ()) -> Section:
    """Rows of name, family, calls and total; shapes of name, grid, block and total."""
    launches = table("By launch shape", "name grid block total_ns", *shapes)
    return section("kernels", table(STEADY, "name family calls total_ns", *rows), launches)


def steps_of(source: str, marker: str = "step") -> Section:
    return section("steps", facts(source=source, marker=marker))


def tagged(**tags: str) -> Section:
    return section("run", Facts(tuple(Fact(f"tag.{key}", key, value) for key, value in tags.items())))


def finding(code: str, cost_ns: int, share: float, severity: Severity, share_of: str = "steady step time") -> Finding:
    return Finding(code, code.lower(), severity, f"{code} costs {cost_ns}", (), (), cost_ns, share, share_of)


def run(
    steps: int,
    *sections: Section,
    findings: Sequence[Finding] = (),
    about: Mapping[str, Value] | None = None,
    **classes: Sequence[int],
) -> Report:
    """A report of so many steps of 1,000 ns, with these sections, findings and facts about the run."""
    plain = report([1000] * steps, **classes)
    own = tuple(Fact(key, key, value) for key, value in (about or {}).items())
    return replace(plain, run=own, sections=(*plain.sections, *sections), findings=tuple(findings))


def side(label: str, *runs: Report) -> Side:
    return Side(label, runs)
