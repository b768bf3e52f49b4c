"""``traceviz report``: what a trace says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceviz.cli.gate_options import gate_options
from traceviz.cli.options import (
    analysis_options,
    output_options,
    page_options,
    page_width,
    part_options,
    progress_bar_on_stderr,
    reading,
    wants_color,
    write,
)
from traceviz.errors import NoVerdictError

if TYPE_CHECKING:
    from traceviz.gates.gates import Gates
    from traceviz.report import Report


@click.command()
@reading
@click.option("--section", "sections", multiple=True, metavar="SLUG", help="Only this section; may be repeated.")
@output_options
@part_options
@click.option(
    "--basis", default="traceviz", metavar="NAME", help="Classes of step time: traceviz, xprof, tensorboard, kineto."
)
@page_options
@click.option("--require-verdict", is_flag=True, help="Exit with 4 where the input cannot be judged.")
@gate_options()
def report(
    traces: tuple[Path, ...], reader: str | None, run: str | None, sections: tuple[str, ...], **options: Any
) -> None:
    """Print what TRACE says: verdict, step breakdown, CUDA time share, kernels, findings.

    Several traces are those of the ranks of one job: they are put on one clock and compared. So are those of a folder.

    TRACE is a trace of torch.profiler (.pt.trace.json, .json.gz); a TensorBoard log folder, an .xplane.pb or
    trace.json.gz file (TensorFlow, JAX); a .nsys-rep, .qdrep, .qdstrm, an nsys SQLite or Parquet export; what nvprof
    wrote (.nvvp, .nvprof, .sql, CSV); or a folder made by `traceviz collect` or `traceviz convert`.

    Exits with 1 where a gate fails (--fail-on, --budget, --budgets), and with 4 where one cannot be judged.
    """
    from traceviz import api
    from traceviz.cli import gate_options as cli_gates
    from traceviz.files import check_file_free, check_not_source
    from traceviz.render.registry import renderer

    renderer(options["format_name"])  # an unknown name is reported before the work, not after
    gates: Gates = options["gates"]
    cli_gates.check_format(options["format_name"], gates)
    output = options["output"]
    if output:
        for trace in traces:
            check_not_source(trace, output)
        check_file_free(output, force=options["force"])
    with progress_bar_on_stderr() as progress:
        found = api.report_on(
            *traces,
            sections=cli_gates.sections_needed(sections, gates),
            options=analysis_options(options["step_marker"], options["input_range"], options["basis"]),
            selection=api.Selection(options["start"], options["end"], options["device"], options["rank"]),
            reader=reader,
            run=run,
            max_size=options["max_size"],
            progress=progress,
        )
    layout = api.RenderOptions(options["width"] or page_width(), wants_color(output), options["top"])
    found, results = cli_gates.judged(found, gates, sections)
    write(api.to_text(found, options["format_name"], layout), output, force=options["force"])
    cli_gates.conclude(found, results, options["format_name"])
    if options["require_verdict"]:
        _require_verdict(found)


def _require_verdict(found: Report) -> None:
    if found.verdict.code in {"cannot-judge", "partial"}:
        raise NoVerdictError("No verdict on the input pipeline is possible.", found.verdict.sentence)
