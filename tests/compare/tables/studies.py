"""Runs of a study as reports, with steps, measures of whole runs and metrics from literals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.compare.sections_of import section, table, tagged
from traceviz.compare.compare import Comparison, compare
from traceviz.compare.options import CompareOptions, Tables
from traceviz.compare.sides.by_tags import sides_by
from traceviz.compare.tables.sections import complete_options, tables_by
from traceviz.core.units import Value
from traceviz.report import STATED, Column, Fact, Facts, Grid, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode

MS = 1_000_000
UNITS = {"total_ns": ("total time", "ns", "lower"), "samples_per_second": ("samples per second", "number", "higher")}


def run(
    step_ms: float = 0,
    *,
    steps: int = 20,
    ending: tuple[str, str] = ("finished", ""),
    learned: Mapping[str, float] | None = None,
    measures: Mapping[str, float] | None = None,
    **tags: object,
) -> Report:
    """Return a run with steps of ``step_ms`` ± 1 %, a tenth of a percent more in each repeat; none if it is 0."""
    sections = [tagged(**{key: str(value) for key, value in tags.items()}), *_measures(measures or {}, ending)]
    if step_ms:
        step_ms *= 1 + 0.001 * int(str(tags.get("repeat", 0)))
        durations = [round(step_ms * MS * (1 + 0.01 * (-1) ** number)) for number in range(steps)]
        sections.append(_steps(durations))
    if learned:
        rows = [
            (name, name, None, "lower" if "loss" in name else "higher", value, value, None)
            for name, value in learned.items()
        ]
        sections.append(section("quality", table(STATED, "name label split better last best best_epoch", *rows)))
    return Report((), Verdict(VerdictCode.NOT_INPUT_BOUND, "Not input-bound."), tuple(sections))


def _steps(durations: Sequence[int]) -> Section:
    columns = [Column(name, name, "ns") for name in ("step", "process", "dur_ns", "host_compute")]
    rows = tuple((number, 0, duration, duration) for number, duration in enumerate(durations))
    return section("breakdown", Grid(tuple(columns), rows, "By step", audience="machine"))


def _measures(values: Mapping[str, float], ending: tuple[str, str]) -> list[Section]:
    outcome, reason = ending
    signal = 9 if outcome == "killed" else None
    facts = [Fact("outcome", "o", outcome), Fact("reason", "r", reason or None), Fact("signal", "s", signal, "id")]
    rows: list[tuple[Value, ...]] = [
        (key, UNITS[key][0], value, *UNITS[key][1:], 1, None, None, "") for key, value in values.items()
    ]
    grid = table("measures", "key label value unit better count low high about", *rows)
    return [section("measures", Facts(tuple(facts)), grid)]


def study(runs: Sequence[Report], by: Sequence[str], base: str = "", per: str = "", **tables: object) -> Comparison:
    """Return a comparison by tags with tables."""
    options = CompareOptions(per=per, tables=Tables(**tables))  # type: ignore[arg-type] (literals of tests)
    tags = tables_by(tuple(by), options)
    sides, left_out = sides_by(((f"run{number}", report) for number, report in enumerate(runs)), tags, base)
    return compare(sides, complete_options(sides, options), by=tags, left_out=left_out)
