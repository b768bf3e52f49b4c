"""``traceviz archive report`` and ``traceviz archive trend``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceviz.cli.options import page_width, progress_bar_on_stderr, wants_color, write
from traceviz.errors import NoVerdictError, UsageError

if TYPE_CHECKING:
    from traceviz.archive.runners.base import Runner
    from traceviz.archive.storage.store import Store
    from traceviz.report import Report

Answer = TypeVar("Answer")
Command = TypeVar("Command", bound=Callable[..., Any])


def _page_options(command: Command) -> Command:
    """Where the page goes and how it looks."""
    options = (
        click.option("--where", "condition", metavar="SQL", help="Only traces of which this is true."),
        click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers read the archive."),
        click.option(
            "--section", "sections", multiple=True, metavar="SLUG", help="Only this section; may be repeated."
        ),
        click.option(
            *("--format", "format_name"),
            default="terminal",
            metavar="NAME",
            help="terminal, csv, github, json, junit or markdown.",
        ),
        click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout."),
        click.option("--force", is_flag=True, help="Replace an existing output file."),
        click.option("--width", type=click.IntRange(min=40), help="Columns of the page (the terminal's, or 100)."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(short_help="Say what the traces have in common, or report on a job.")
@click.argument("archive")
@click.option("--job", metavar="NAME", help="Report on the ranks of this job instead, as on one trace.")
@click.option("--top", type=click.IntRange(min=1), default=10, help="Rows per table (10).")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes; reading the catalogue takes one, whatever N is."
)
@_page_options
def report(archive: str, job: str | None, condition: str | None, top: int, **options: Any) -> None:
    """Say what the traces of ARCHIVE have in common: verdicts, what costs most over all of them, which stand out.

    With --job, the traces of one job's ranks are one unit: imbalance, stragglers, collective skew.
    """
    from traceviz.archive.request import ReportRequest, report_for
    from traceviz.archive.storage.store import Store

    workers, scheduler = (options.pop(name) for name in ("workers", "scheduler"))
    _check_page(**options)
    asked = ReportRequest(Store.at(archive), condition or "", job or "", top)
    runner = _runner(asked.store, workers, scheduler)
    _show(_answer(report_for, asked, runner if scheduler else None), top, **options)


@click.command(short_help="Say where a figure changed from run to run.")
@click.argument("archive")
@click.argument("metric")
@click.option(
    "--by", default="date", metavar="TAG|date", help="What orders the runs: when they were recorded, or a tag."
)
@click.option("--per", default="", metavar="TAG", help="Judge the values of this tag, or of framework, gpu ..., apart.")
@click.option("--better", type=click.Choice(["lower", "higher"]), help="Which change of METRIC is a gain.")
@click.option("--min-effect", default="1%", metavar="SHARE", help="Smaller changes are none (1%).")
@click.option(
    "--fail-on-regression",
    metavar="SHARE",
    help="Exit with 1 where the last level is worse than the best before it, by SHARE.",
)
@click.option("--require-verdict", is_flag=True, help="Exit with 4 where there are too few runs to judge.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes that read saved reports, where METRIC needs them (1)."
)
@_page_options
def trend(archive: str, metric: str, condition: str | None, **options: Any) -> None:
    """Say where METRIC changed from run to run: by how much, how sure that is, for better or worse.

    METRIC is a figure of the catalogue, such as step_median, input_share or peak_memory, or what budgets know:
    api:cudaMalloc, class:input_wait, SECTION.FACT of the JSON report. SHARE is a share of the level before; of figures
    that are shares themselves, percentage points.

    Exits with 1 where --fail-on-regression asks and the last level is so much worse than the best before it, with 4
    where it cannot be judged.
    """
    from traceviz.archive.request import TrendRequest, trend_for
    from traceviz.archive.storage.store import Store
    from traceviz.archive.trends.report import document, gate
    from traceviz.archive.trends.saved_figures import is_in_catalogue
    from traceviz.archive.trends.trend import TrendOptions
    from traceviz.cli import gate_options as cli_gates
    from traceviz.gates.budgets import parse_share
    from traceviz.gates.gates import gated

    by, per, better, least, limit, strict = (
        options.pop(name) for name in ("by", "per", "better", "min_effect", "fail_on_regression", "require_verdict")
    )
    workers, scheduler = (options.pop(name) for name in ("workers", "scheduler"))
    failing = None if limit is None else parse_share(limit)
    how = TrendOptions(min_effect=parse_share(least), better=better or "")
    _check_page(gates=limit is not None, **options)
    asked = TrendRequest(Store.at(archive), metric, condition or "", by, per, how)
    runner = _runner(asked.store, workers, scheduler)
    if is_in_catalogue(metric):
        found = _answer(trend_for, asked, runner if scheduler else None)
    else:  # the workers read the saved reports, and what comes here is a number of each
        found = _answer(partial(trend_for, runner=runner), asked, None)
    if failing is not None and not found.better:
        raise UsageError(
            f"{metric} may rise or fall: neither is a regression.",
            fix="Say which is a gain: --better lower, or --better higher.",
        )
    results = () if failing is None else gate(found, failing)
    told = gated(document(found), results)
    _show(told, None, **options)
    cli_gates.conclude(told, results, options["format_name"])
    if strict and (not found.groups or any(one.why for one in found.groups)):
        raise NoVerdictError("Not every series can be judged.", told.verdict.sentence)


def _runner(store: Store, workers: int | None, scheduler: str | None) -> Runner:
    """Who does the work: this process, where nobody else is named.

    Raises:
        UsageError: there is no archive, or both are given.
    """
    from traceviz.archive.runners.choose import runner_for
    from traceviz.archive.runners.local import SerialRunner
    from traceviz.archive.storage import layout

    layout.check(store)  # a cluster would write there, to see whether its workers see it
    return SerialRunner() if workers is None and scheduler is None else runner_for(workers, scheduler, store)


def _answer(function: Callable[..., Answer], asked: object, runner: Runner | None) -> Answer:
    """What a function says to what is asked: here, or where a runner has it done: near the archive.

    Raises:
        TracevizError: it has no answer, or there is no such cluster.
    """
    from traceviz.archive.runners.choose import run_one

    if runner is not None:
        return run_one(runner, function, asked)
    with progress_bar_on_stderr() as progress:
        return function(asked, progress)


def _check_page(*, format_name: str, output: Path | None, force: bool, gates: bool = False, **_others: Any) -> None:
    """What is wrong with the page is said before the work, not after.

    Raises:
        UsageError: there is no such format, or the output exists.
    """
    from traceviz.cli.gate_options import JUNIT
    from traceviz.files import check_file_free
    from traceviz.render.registry import renderer

    renderer(format_name)
    if format_name == JUNIT and not gates:
        raise UsageError("--format junit lists gates, and none was asked for.")
    if output is not None:
        check_file_free(output, force=force)


def _show(
    found: Report,
    top: int | None,
    *,
    sections: tuple[str, ...],
    format_name: str,
    output: Path | None,
    force: bool,
    width: int | None,
) -> None:
    from traceviz import api

    layout = api.RenderOptions(width or page_width(), wants_color(output), top, sections or None)
    write(api.to_text(found, format_name, layout), output, force=force)
