"""``traceviz report``: the report on a trace."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceviz.cli.boundary import say
from traceviz.cli.gate_options import gate_options
from traceviz.cli.options import (
    HTML,
    OutputOptions,
    PageOptions,
    PartOptions,
    optional_traces_argument,
    output_options,
    page_options,
    part_options,
    progress_bar_on_stderr,
    reading_options,
)
from traceviz.core.errors import NoVerdictError, UsageError
from traceviz.parsers.base import ReadOptions
from traceviz.report import SCHEMA

if TYPE_CHECKING:
    from traceviz.gates.gates import Gates
    from traceviz.report import Report


@click.command()
@optional_traces_argument
@reading_options
@click.option("--section", "sections", multiple=True, metavar="NAME", help="Only this section; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="All sections, not only the first screen.")
@output_options(SCHEMA)
@part_options
@click.option(
    "--basis",
    default="traceviz",
    metavar="NAME",
    help="Classes of step time: traceviz, xprof, tensorboard or kineto (default: traceviz).",
)
@page_options
@click.option(
    "--timeline-events",
    type=click.IntRange(min=0),
    metavar="N",
    help="Events in the timeline of a page; levels of detail show further ones. 0: no timeline (default: 1,000,000).",
)
@click.option("--why", "explains", is_flag=True, help="Explain only the headline.")
@click.option(
    "--what-if",
    "predicts",
    is_flag=True,
    help="Only what a step would take without each of its largest causes, at least and at most.",
)
@click.option(
    "--require-verdict",
    is_flag=True,
    help="Exit with 4 if the input pipeline cannot be judged; serving traces never have one.",
)
@gate_options()
def report(
    *,
    traces: tuple[Path, ...],
    read: ReadOptions,
    part: PartOptions,
    output: OutputOptions,
    page: PageOptions,
    gates: Gates | None,
    sections: tuple[str, ...],
    everything: bool,
    timeline_events: int | None,
    basis: str,
    explains: bool,
    predicts: bool,
    require_verdict: bool,
) -> None:
    """Print what TRACE says: verdict, step breakdown, CUDA time share, kernels, findings.

    Without TRACE, the newest run below traceviz-runs is reported on: see `traceviz runs`.

    Several traces, or a folder of them, are the ranks of one job: they are put on one clock and compared.

    TRACE is a torch.profiler trace (.pt.trace.json, .json.gz); a TensorBoard log folder, an .xplane.pb or
    trace.json.gz file (TensorFlow, JAX); a .nsys-rep, .qdrep or .qdstrm file, an nsys SQLite or Parquet export; an
    nvprof file (.nvvp, .nvprof, .sql, CSV); a folder made by `traceviz collect` or `traceviz convert`; or - for a file
    on standard input.

    Exits with 1 if a gate fails (--fail-on, --budget, --budgets), and with 4 if a gate cannot be judged.
    """
    from traceviz import api
    from traceviz.cli import gate_options as cli_gates

    cli_gates.check_format(output.format_name, gates)
    if predicts and (explains or sections or everything):
        raise UsageError("--what-if shows one section.", fix="Leave out --why, --section and --all.")
    if explains and sections:
        raise UsageError("--why needs all sections, and --section leaves some out.", fix="Give one of the two.")
    if everything and sections:
        raise UsageError("--all shows every section, and --section some of them.", fix="Give one of the two.")
    traces = traces or (_newest_run(),)
    output.check(traces)
    is_drawn = output.format_name == HTML and not explains and not predicts
    if timeline_events is not None and not is_drawn:
        raise UsageError(
            "--timeline-events is about the timeline of a page, and there is none.", fix="Add --format html."
        )
    with progress_bar_on_stderr() as progress:
        make = partial(api.pictured, events=timeline_events) if is_drawn else api.report_on
        made = make(
            *traces,
            sections=api.every_section() if predicts else cli_gates.sections_needed(sections, gates),
            options=part.analysis(basis),
            selection=part.selection(),
            read=replace(read, progress=progress),
        )
        document, pictures = made if isinstance(made, tuple) else (made, None)
    if not sections and part.selection().is_everything:
        _keep_verdict(traces, document)
    document, results = cli_gates.judge_report(document, gates, sections)
    shown = api.why(document) if explains else api.what_if(document) if predicts else document
    layout = page.layout(output.path, _choose_sections(document, sections))
    layout = replace(layout, first_screen=not (everything or sections or explains or predicts), figure=output.figure)
    if output.format_name == "html" and len(traces) == 1:
        layout = replace(layout, command=f"traceviz report {shlex.quote(str(traces[0].absolute()))}")
    output.write(api.to_text(shown, output.format_name, layout, pictures))
    cli_gates.conclude(document, results, output.format_name)
    if require_verdict and document.verdict.code.is_blind:
        raise NoVerdictError("No verdict on the input pipeline is possible.", document.verdict.sentence)


def _keep_verdict(traces: tuple[Path, ...], document: Report) -> None:
    """Store the verdict on one run folder for ``traceviz runs``."""
    from traceviz.parsers.run.layout import is_run_folder

    if len(traces) == 1 and is_run_folder(traces[0]):
        from traceviz.parsers.run.manifest import Judgement
        from traceviz.runs.recorded_runs import save_verdict

        save_verdict(traces[0], Judgement(document.verdict.code, document.verdict.sentence))


def _newest_run() -> Path:
    """Return the newest run below the current folder, and print its name because the user named none.

    Raises:
        UsageError: there is none.
    """
    from traceviz.runs.recorded_runs import RUNS, newest_run

    run = newest_run(Path(RUNS))
    say(f"traceviz: the newest run: {run}")
    return run


def _choose_sections(document: Report, sections: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the named sections to show, if more were analysed than they need; ``None`` for all."""
    from traceviz.cli.gate_options import PARTS

    if PARTS.isdisjoint(sections):
        return None
    present = {*PARTS, *(section.slug for section in document.sections), *(skip.slug for skip in document.skipped)}
    return tuple(name for name in sections if name in present)
