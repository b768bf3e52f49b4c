"""``traceviz archive report`` and ``traceviz archive trend``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from traceviz.cli.archive.options import PageOptions, page_options
from traceviz.cli.options import FORMATS_HELP, check_figure_format, progress_bar_on_stderr
from traceviz.core.errors import NoVerdictError, UsageError
from traceviz.report import POPULATION, SCHEMA, TREND

if TYPE_CHECKING:
    from traceviz.archive.runners.base import Runner
    from traceviz.archive.storage.store import Store

Answer = TypeVar("Answer")


def _source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the traces, and for the workers that read them."""
    condition = click.option("--where", "condition", metavar="SQL", help="Only traces that meet this condition.")
    scheduler = click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers read the archive.")
    return condition(scheduler(command))


@click.command(short_help="Say what the traces have in common, or report on a job.")
@click.argument("archive")
@click.option("--job", metavar="NAME", help="Report on the ranks of this job, as on one trace.")
@click.option("--top", type=click.IntRange(min=1), default=10, help="Rows per table (default: 10).")
@click.option(
    "--per",
    default="",
    metavar="TAG",
    help="Compare shares of API functions by this tag, or by gpu, job ... (default: framework).",
)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes; reading the catalogue takes only one (default: 1)."
)
@_source_options
@page_options(FORMATS_HELP, has_sections=True, figures_of=(POPULATION, SCHEMA))
def report(
    archive: str,
    *,
    job: str | None,
    top: int,
    per: str,
    workers: int | None,
    condition: str | None,
    scheduler: str | None,
    page: PageOptions,
) -> None:
    """Say what the traces of ARCHIVE have in common: verdicts, the costliest findings, and the outliers.

    With --job, report on the ranks of one job together: imbalance, stragglers, collective skew.
    """
    from traceviz.archive.request import ReportRequest, report_for
    from traceviz.archive.storage.store import Store

    _check_page(page)
    if job and per:
        raise UsageError("--per compares groups of traces, and --job reports on one job.", fix="Leave one of them out.")
    request = ReportRequest(Store.at(archive), condition or "", job or "", top, per)
    runner = _runner(request.store, workers, scheduler)
    page.print(_answer(report_for, request, runner if scheduler else None), top)


@click.command(short_help="Say where a figure changed from run to run.")
@click.argument("archive")
@click.argument("metric")
@click.option(
    "--by",
    default="date",
    metavar="TAG|date",
    help="Order of the runs: by recording time, or by a tag (default: date).",
)
@click.option(
    "--per", default="", metavar="TAG", help="Judge each value of this tag, or of framework, gpu ..., separately."
)
@click.option("--better", type=click.Choice(["lower", "higher"]), help="Which direction of METRIC is better.")
@click.option("--min-effect", default="1%", metavar="SHARE", help="Smaller changes do not count (default: 1%).")
@click.option(
    "--fail-on-regression",
    metavar="SHARE",
    help="Exit with 1 where the last level is worse than the best before it by SHARE or more.",
)
@click.option("--require-verdict", is_flag=True, help="Exit with 4 where there are too few runs to judge.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that read saved reports, if METRIC needs them (default: 1).",
)
@_source_options
@page_options(FORMATS_HELP, has_sections=True, figures_of=(TREND,))
def trend(
    archive: str,
    metric: str,
    *,
    by: str,
    per: str,
    better: Literal["lower", "higher"] | None,
    min_effect: str,
    fail_on_regression: str | None,
    require_verdict: bool,
    workers: int | None,
    condition: str | None,
    scheduler: str | None,
    page: PageOptions,
) -> None:
    """Say where METRIC changed from run to run: by how much, how certainly, for better or worse.

    METRIC is a figure of the catalogue, such as step_mean, input_share or peak_memory, or a metric of budgets:
    api:cudaMalloc, class:input_wait, quality:loss, SECTION.FACT of the JSON report. SHARE is a share of the level
    before; for figures that are shares themselves, percentage points.

    With --fail-on-regression, exits with 1 where the last level is worse than the best before it by SHARE or more, and
    with 4 where that cannot be judged.
    """
    from traceviz.archive.request import TrendRequest, trend_for
    from traceviz.archive.storage.store import Store
    from traceviz.archive.trends.report import document, gate
    from traceviz.archive.trends.saved_figures import is_in_catalogue
    from traceviz.archive.trends.trend import TrendOptions
    from traceviz.cli import gate_options as cli_gates
    from traceviz.gates.budgets import parse_share
    from traceviz.gates.gates import add_gate_section

    limit = None if fail_on_regression is None else parse_share(fail_on_regression)
    options = TrendOptions(min_effect=parse_share(min_effect), better=better or "")
    _check_page(page, gates=limit is not None)
    request = TrendRequest(Store.at(archive), metric, condition or "", by, per, options)
    runner = _runner(request.store, workers, scheduler)
    if is_in_catalogue(metric):
        judged = _answer(trend_for, request, runner if scheduler else None)
    else:  # the workers read the saved reports, and return a number for each
        judged = _answer(partial(trend_for, runner=runner), request, None)
    if limit is not None and not judged.better:
        raise UsageError(
            f"{metric} may rise or fall: neither direction is a regression.",
            fix="Say which direction is better: --better lower, or --better higher.",
        )
    results = () if limit is None else gate(judged, limit)
    report_of_trend = add_gate_section(document(judged), results)
    page.print(report_of_trend)
    cli_gates.conclude(report_of_trend, results, page.format_name)
    if require_verdict and (not judged.groups or any(trajectory.why for trajectory in judged.groups)):
        raise NoVerdictError("Not every series can be judged.", report_of_trend.verdict.sentence)


def _runner(store: Store, workers: int | None, scheduler: str | None) -> Runner:
    """Return the runner for the work: this process, unless others are named.

    Raises:
        UsageError: there is no archive, or both are given.
    """
    from traceviz.archive.runners.choose import runner_for
    from traceviz.archive.runners.local import SerialRunner
    from traceviz.archive.storage import layout

    layout.check(store)  # before a cluster writes to the archive to check that its workers see it
    return SerialRunner() if workers is None and scheduler is None else runner_for(workers, scheduler, store)


def _answer(function: Callable[..., Answer], request: object, runner: Runner | None) -> Answer:
    """Return the answer of a function to a request: here, or on a worker of a runner near the archive.

    Raises:
        TracevizError: it has no answer, or there is no such cluster.
    """
    from traceviz.archive.runners.choose import run_one

    if runner is not None:
        return run_one(runner, function, request)
    with progress_bar_on_stderr() as progress:
        return function(request, progress)


def _check_page(page: PageOptions, *, gates: bool = False) -> None:
    """Reject a wrong page before the work, not after.

    Raises:
        UsageError: there is no such format or figure, or the output exists.
    """
    from traceviz.cli.gate_options import JUNIT
    from traceviz.core.files import check_file_free
    from traceviz.render.registry import renderer

    renderer(page.format_name)
    if page.format_name == JUNIT and not gates:
        raise UsageError("--format junit lists gates, and there are none.")
    check_figure_format(page.figure, page.format_name)
    if page.output is not None:
        check_file_free(page.output, force=page.force)
