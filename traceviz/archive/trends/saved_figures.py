"""Figures that are not in the catalogue, from the saved reports of traces: ``api:cudaMalloc``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl

from traceviz.analyses.program.metric_names import read_name
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.catalogue.segments import ready
from traceviz.archive.population.observations import FIGURES, Figure
from traceviz.archive.runners.base import Runner, RunnerError
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.storage.layout import REPORT, trace_parts
from traceviz.archive.storage.store import Store
from traceviz.core.errors import DamagedTraceError, UsageError, WorkerError
from traceviz.core.units import Unit, counted
from traceviz.gates.metrics import QUALITY, Candidate, Metric, Reading, metric
from traceviz.parsers.base import Progress, silent
from traceviz.render.json import loads
from traceviz.report import Better

_API = "api:"
"""Prefix of figures on one CUDA function."""

_NEUTRAL = frozenset({"class:device_compute"})
"""Shares for which neither more nor less is better. It is not known for facts of sections, either."""


REPORTS_PER_PART = 50
"""Number of saved reports that a worker reads at a time."""


@dataclass(frozen=True, slots=True)
class FigureRequest:
    """A request for a figure of some traces.

    Args:
        store: The archive.
        name: Name of the figure.
        traces: Id and format of each trace.
    """

    store: Store
    name: str
    traces: tuple[tuple[str, str], ...]


def is_in_catalogue(name: str) -> bool:
    """Return whether the catalogue holds a figure of this name, so that no report must be read."""
    return any(figure.name == name for figure in FIGURES)


def with_figure(
    store: Store,
    rows: pl.DataFrame,
    name: str,
    progress: Progress = silent,
    runner: Runner = SerialRunner(),  # noqa: B008 (it has no state)
) -> tuple[Figure, pl.DataFrame]:
    """Return a figure by its name, and the rows of ready traces with a column of the figure.

    Args:
        store: The archive.
        rows: Rows of its catalogue.
        name: A figure of the catalogue, or a metric of budgets: ``class:NAME``, ``api:FUNCTION``, ``quality:NAME``,
            ``SECTION.FACT``. For metrics, the saved report of every trace is read, and all ranks of a trace get its
            figure.
        progress: Receives progress.
        runner: Runner that reads saved reports.

    Raises:
        UsageError: there is no such figure, or no trace calls its function.
        OutputError: the archive cannot be read.
        WorkerError: the worker that read the reports died.
    """
    known = next((reading for reading in FIGURES if reading.name == name), None)
    if known is not None:
        return known, rows
    definition = _metric(name)
    usable = ready(rows)
    readings = _readings(store, name, usable.select("trace_id", "format").unique(maintain_order=True), progress, runner)
    measured = [reading for reading in readings.values() if reading.value is not None]
    units = [reading.unit for reading in measured]
    if name.startswith(_API) and measured and not any(reading.value for reading in measured):
        raise UsageError(
            f"{name.removeprefix(_API)} is not called in any of {counted(len(measured), 'trace')}.",
            "A trend of it would say nothing.",
            'See which are called: traceviz archive query ARCHIVE "SELECT DISTINCT name FROM cuda_api ORDER BY name"',
        )
    unit: Unit = definition.unit or (units[-1] if units else "number")
    values = pl.Series([readings[trace_id].value for trace_id in usable["trace_id"]], dtype=pl.Float64)
    unknown = "" if measured else next((reading.why for reading in readings.values() if reading.why), "")
    return Figure(name, unit, definition.meaning, _better(definition), unknown), usable.with_columns(values.alias(name))


def _better(definition: Metric) -> Better:
    """Return the better direction of a figure. The name of a quality figure states it."""
    kind, _, rest = definition.name.partition(":")
    if kind == QUALITY and rest:
        return read_name(rest).better
    return "" if definition.unit is None or definition.name in _NEUTRAL else "lower"


def read_figures(request: FigureRequest) -> list[Reading]:
    """Return the figure in the saved reports of several traces, in their order; runs on a worker of the runner.

    Raises:
        OutputError: the archive cannot be read.
    """
    definition = _metric(request.name)
    return [_reading(request.store, format_name, trace_id, definition) for trace_id, format_name in request.traces]


def _readings(store: Store, name: str, traces: pl.DataFrame, progress: Progress, runner: Runner) -> dict[str, Reading]:
    """Return the figure of each trace, by its id, in the order of the traces.

    Raises:
        OutputError: the archive cannot be read.
        WorkerError: the worker that read the reports died.
    """
    parts = [FigureRequest(store, name, tuple(part.iter_rows())) for part in traces.iter_slices(REPORTS_PER_PART)]
    readings_by_id: dict[str, Reading] = {}
    with closing(runner.map(read_figures, parts)) as results:
        for part, readings in results:
            if isinstance(readings, RunnerError):
                raise readings.cause or WorkerError("Saved reports cannot be read.", readings.message)
            readings_by_id |= dict(zip((trace_id for trace_id, _ in part.traces), readings, strict=True))
            progress("reports", len(readings_by_id), traces.height)
    return {trace_id: readings_by_id[trace_id] for trace_id in traces["trace_id"]}


def _metric(name: str) -> Metric:
    """Return the metric of this name, for a single run.

    Raises:
        UsageError: there is no such metric. The error names the known metrics.
    """
    try:
        definition = metric(name)
    except UsageError as error:
        known = [figure.name for figure in FIGURES]
        fix = f"Known: {', '.join(known)}, class:NAME, api:FUNCTION, SECTION.FACT of the JSON report."
        raise UsageError(error.what, error.why if ":" in name else _meant(name, known), fix) from None
    if definition.comparing:
        raise UsageError(f"{name} compares two sides, and a trace has one.", fix="Compare traces: traceviz compare.")
    return definition


def _meant(name: str, known: Sequence[str]) -> str:
    """Return the reason why a name is not a figure, if known."""
    if name in CATALOGUE.names:
        return (
            f"{name} is a column of the catalogue, and no figure: runs are told apart by such (--by, --per, --where)."
        )
    near = get_close_matches(name, known, 1)
    return f"Did you mean {near[0]}?" if near else ""


def _reading(store: Store, format_name: str, trace_id: str, definition: Metric) -> Reading:
    """Return the figure in the saved report of a trace; unknown if the report is missing or cannot be read."""
    try:
        report = loads(store.read(*trace_parts(format_name, trace_id), REPORT).decode("utf-8"))
    except (FileNotFoundError, UnicodeDecodeError, DamagedTraceError):  # `verify` reports such traces, and the fix
        return Reading(None, definition.unit or "number")
    return definition.read(Candidate((report,)))
