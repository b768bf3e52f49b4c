"""``traceviz compare``: before and after, or any number of sides."""

from __future__ import annotations

from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceviz.cli.gate_options import gate_options
from traceviz.cli.options import (
    Source,
    analysis_options,
    output_options,
    page_options,
    page_width,
    part_options,
    progress_bar_on_stderr,
    reading_options,
    wants_color,
    write,
)
from traceviz.errors import NoVerdictError, UsageError

if TYPE_CHECKING:
    from traceviz.api import Comparison
    from traceviz.compare.compare import Pair
    from traceviz.compare.options import CompareOptions
    from traceviz.gates.gates import GateResult, Gates
    from traceviz.report import Report


@click.command()
@click.argument("sides", nargs=-1, type=Source(), metavar="BASE NEW...")
@click.option("--group", "groups", multiple=True, metavar="NAME=RUN,RUN", help="A side of several runs; repeatable.")
@click.option(
    "--by", metavar="TAG,TAG", help="Sides are the values of these tags of the runs, or folders of runs, named."
)
@click.option("--base", default="", metavar="NAME", help="Side to compare the others with (the first), e.g. 32.")
@click.option(
    "--per", default="", metavar="TAG", help="Compare the time of one unit, where TAG says how many a step does."
)
@click.option("--same-work", is_flag=True, help="Steps do the same work, whatever shapes of kernels say.")
@click.option("--min-effect", default="1%", metavar="SHARE", help="Smaller differences are no change (1%).")
@click.option("--section", "sections", multiple=True, metavar="SLUG", help="Show only this section; may be repeated.")
@output_options
@part_options
@reading_options
@page_options
@click.option("--require-verdict", is_flag=True, help="Exit with 4 where a side cannot be judged.")
@gate_options(comparing=True)
def compare(sides: tuple[Path, ...], groups: tuple[str, ...], by: str | None, gates: Gates, **options: Any) -> None:
    """Say whether NEW is faster than BASE, by how much, how sure that is, and where the difference lies.

    BASE and NEW are what `traceviz report` takes, of any formats, or reports saved with `--format json`. Several NEW
    are compared with BASE, and each with the one before it.

    Several runs of a side tell how much a run differs from the next: --group base=run1,run2 --group new=run3,run4.
    With --by, runs of `traceviz collect --tag KEY=VALUE` are the sides: traceviz compare runs/ --by model,batch.

    Exits with 1 where a gate fails (--fail-on-regression, --fail-on, --budget, --budgets), and with 4 where one cannot
    be judged.
    """
    from traceviz import api
    from traceviz.cli import gate_options as cli_gates
    from traceviz.render.registry import renderer

    renderer(options["format_name"])  # an unknown name is reported before the work, not after
    cli_gates.check_format(options["format_name"], gates)
    _check_sections(options["sections"])
    members = _groups(groups)
    _check_output(options["output"], [*sides, *(path for runs in members.values() for path in runs)], options["force"])
    with progress_bar_on_stderr() as progress:
        found = api.compare(
            *sides,
            groups=members,
            by=_tags(by),
            base=options["base"],
            options=_compare_options(options["per"], options["min_effect"], same_work=options["same_work"]),
            analysis=analysis_options(options["step_marker"], options["input_range"], "traceviz"),
            selection=api.Selection(options["start"], options["end"], options["device"], options["rank"]),
            reader=options["reader"],
            run=options["run"],
            max_size=options["max_size"],
            progress=progress,
        )
    wanted = options["sections"] or None
    layout = api.RenderOptions(options["width"] or page_width(), wants_color(options["output"]), options["top"], wanted)
    told, results = _judged(found, gates)
    write(api.to_text(told, options["format_name"], layout), options["output"], force=options["force"])
    cli_gates.conclude(told, results, options["format_name"])
    if options["require_verdict"]:
        _require_verdicts(found)


def _check_sections(wanted: tuple[str, ...]) -> None:
    """A section that no comparison has is reported before the work, not after.

    Raises:
        UsageError: there is none of a name.
    """
    from traceviz.compare.report.document import SECTIONS

    for name in wanted:
        if name not in SECTIONS:
            raise UsageError.unknown("section", name, SECTIONS)


def _groups(texts: tuple[str, ...]) -> dict[str, list[Path]]:
    """Runs by the name of their side: ``base=run1,run2``; a name that comes twice gets more runs, patterns are found.

    Raises:
        UsageError: a text is no group, or names no run.
    """
    found: dict[str, list[Path]] = {}
    for text in texts:
        label, equals, rest = text.partition("=")
        is_one = bool(rest) and Path(rest).exists()
        paths = [rest] if is_one else [part.strip() for part in rest.split(",")]
        if not label.strip() or not equals or not all(paths):  # as of an empty variable of a shell
            raise UsageError(f"--group {text!r} names no runs.", fix="Write it as --group base=run1,run2.")
        runs = [Path(run) for path in paths for run in _matching(path)]
        found.setdefault(label.strip(), []).extend(runs)
    return found


def _matching(path: str) -> list[str]:
    """The paths of a pattern such as ``runs/base-*``; what exists, or is none, is meant as it is written.

    Raises:
        UsageError: nothing matches the pattern.
    """
    if Path(path).exists() or not has_magic(path):
        return [path]
    found = sorted(glob(path))  # noqa: PTH207 (patterns may be absolute)
    if not found:
        raise UsageError(f"No run matches the pattern {path!r}.", fix="Check the path.")
    return found


def _tags(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    tags = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not tags:
        raise UsageError("--by names no tag.", fix="Write it as --by model,batch.")
    return tags


def _compare_options(per: str, min_effect: str, *, same_work: bool) -> CompareOptions:
    from traceviz.compare.options import CompareOptions, Limits
    from traceviz.gates.budgets import parse_share

    return CompareOptions(Limits(min_effect=parse_share(min_effect)), per, same_work)


def _check_output(output: Path | None, sources: list[Path], force: bool) -> None:  # noqa: FBT001 (as the option is)
    from traceviz.files import check_file_free, check_not_source

    if output is None:
        return
    for source in sources:
        check_not_source(source, output)
    check_file_free(output, force=force)


def _judged(found: Comparison, gates: Gates) -> tuple[Report, tuple[GateResult, ...]]:
    """The document, with a section of what became of the gates: every side but the base goes through them."""
    from traceviz import api

    told = api.document(found)
    if not gates:
        return told, ()
    from traceviz.gates.gates import gated, judge_gates
    from traceviz.gates.metrics import Candidate

    several = len(found.pairs) > 1
    candidates = [
        Candidate(pair.new.reports, pair.new.label if several else "", pair.judgement) for pair in found.pairs
    ]
    results = judge_gates(gates, candidates)
    return gated(told, results), results


def _require_verdicts(found: Comparison) -> None:
    from traceviz.compare.judge import Outcome

    unknown = [pair for pair in found.pairs if pair.judgement.outcome is Outcome.UNKNOWN]
    if unknown:
        why = " ".join(f"{_named(pair)}." for pair in unknown)
        raise NoVerdictError("Not every side can be judged.", why)


def _named(pair: Pair) -> str:
    """Why a side cannot be judged, with its name."""
    why = pair.judgement.why.removesuffix(".")
    return why if pair.new.label in why else f"{pair.new.label}: {why}"
