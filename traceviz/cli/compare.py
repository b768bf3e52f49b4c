"""``traceviz compare``: before and after, or any number of sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceviz.cli.gate_options import gate_options
from traceviz.cli.options import (
    HTML,
    OutputOptions,
    PageOptions,
    PartOptions,
    Source,
    option_group,
    output_options,
    page_options,
    part_options,
    progress_bar_on_stderr,
    reading_options,
)
from traceviz.core.errors import NoVerdictError, UsageError
from traceviz.parsers.base import ReadOptions
from traceviz.report import COMPARISON

if TYPE_CHECKING:
    from traceviz.api import Comparison
    from traceviz.compare.compare import Pair
    from traceviz.compare.options import Against, CompareOptions, Tables
    from traceviz.gates.gates import GateResult, Gates
    from traceviz.report import Report
    from traceviz.report.pictures.values import Flame, Pictures


@dataclass(frozen=True, slots=True)
class _How:
    """Runs of each side, and how sides are compared: options of ``traceviz compare`` as they are typed."""

    groups: tuple[str, ...]
    by: str | None
    base: str
    per: str
    measure: str
    same_work: bool
    min_effect: str

    def members(self) -> dict[str, list[Path]]:
        """Return the runs by the name of their side: ``base=run1,run2``. Repeated names add runs; patterns expand.

        Raises:
            UsageError: a text is not a group, or names no run.
        """
        members: dict[str, list[Path]] = {}
        for text in self.groups:
            label, equals, rest = text.partition("=")
            is_one_path = bool(rest) and Path(rest).exists()
            paths = [rest] if is_one_path else [path.strip() for path in rest.split(",")]
            if not label.strip() or not equals or not all(paths):  # as an empty shell variable leaves it
                raise UsageError(f"--group {text!r} names no runs.", fix="Write it as --group base=run1,run2.")
            runs = [Path(run) for path in paths for run in _matching(path)]
            members.setdefault(label.strip(), []).extend(runs)
        return members

    def tags(self) -> tuple[str, ...]:
        """Tags whose values are the sides.

        Raises:
            UsageError: the option is given, and names no tag.
        """
        if self.by is None:
            return ()
        tags = tuple(dict.fromkeys(tag.strip() for tag in self.by.split(",") if tag.strip()))
        if not tags:
            raise UsageError("--by names no tag.", fix="Write it as --by model,batch.")
        return tags

    def options(self, tables: _Tables) -> CompareOptions:
        """Return the options of the comparison, with further tables.

        Raises:
            UsageError: the least effect is not a share.
        """
        from traceviz.compare.options import CompareOptions, Limits
        from traceviz.gates.budgets import parse_share

        limits = Limits(min_effect=parse_share(self.min_effect))
        measures = tuple(name.strip() for name in self.measure.split(",") if name.strip())
        return CompareOptions(limits, self.per, self.same_work, tables=tables.chosen(measures))


@dataclass(frozen=True, slots=True)
class _Tables:
    """Tables of a study: options of ``traceviz compare`` as they are typed."""

    cross: bool
    against: Against | None
    curve: str
    scaling: str

    def chosen(self, measures: tuple[str, ...]) -> Tables:
        """Return the tables, with the figures to show."""
        from traceviz.compare.options import Tables

        return Tables(self.cross, self.against or "", self.curve.strip(), self.scaling.strip(), measures)

    def sections(self, format_name: str) -> tuple[str, ...] | None:
        """Return the sections to show: the requested tables, and the table of sides except in CSV.

        JSON has all sections, and so has every format if no table is requested.
        """
        asked = {"cross": self.cross, "curve": bool(self.curve), "scaling": bool(self.scaling)}
        slugs = tuple(slug for slug, is_asked in asked.items() if is_asked)
        if not slugs or format_name not in _FOR_PEOPLE:
            return None
        return slugs if format_name == _CSV else (*slugs, "effect")


_TWO = 2
_CSV = "csv"
_FOR_PEOPLE = frozenset({"terminal", "markdown", _CSV})
_tables_options = option_group(
    "tables",
    _Tables,
    click.option("--cross", is_flag=True, help="Cross the first two tags of --by: rows of one, columns of the other."),
    click.option(
        "--against",
        type=click.Choice(["row", "column", "all", "none"]),
        help="Compare cells of a cross table with the base of their row, of their column, or of all.",
    ),
    click.option("--curve", default="", metavar="TAG", help="A curve over the numbers of this tag, and its best."),
    click.option("--scaling", default="", metavar="TAG", help="Efficiency over numbers of devices, cores or threads."),
)
_how_options = option_group(
    "how",
    _How,
    click.option(
        "--group", "groups", multiple=True, metavar="NAME=RUN,RUN", help="A side of several runs; repeatable."
    ),
    click.option(
        "--by", metavar="TAG,TAG", help="Group runs, or folders of runs, into sides by the values of these tags."
    ),
    click.option(
        "--base", default="", metavar="NAME", help="Side to compare the others with, e.g. 32 (default: the first)."
    ),
    click.option(
        "--per",
        default="",
        metavar="TAG",
        help="Compare the time per unit of work; TAG says how many units a step does.",
    ),
    click.option(
        "--measure",
        default="",
        metavar="NAME,NAME",
        help="What the verdict is about: step, total, training, epoch or start (default: step, or total if a side has "
        "no steps). Tables show other measures, too: samples-per-second, latency-p95, energy, val_accuracy, ...",
    ),
    click.option("--same-work", is_flag=True, help="Vouch that steps do the same work, though kernel shapes differ."),
    click.option(
        "--min-effect", default="1%", metavar="SHARE", help="Smaller differences count as no change (default: 1%)."
    ),
)


@click.command()
@click.argument("sides", nargs=-1, type=Source(), metavar="BASE NEW...")
@_how_options
@_tables_options
@click.option("--section", "sections", multiple=True, metavar="NAME", help="Only this section; may be repeated.")
@output_options(COMPARISON)
@part_options
@reading_options
@page_options
@click.option("--require-verdict", is_flag=True, help="Exit with 4 if a side cannot be judged.")
@gate_options(comparing=True)
def compare(
    *,
    sides: tuple[Path, ...],
    how: _How,
    tables: _Tables,
    part: PartOptions,
    read: ReadOptions,
    output: OutputOptions,
    page: PageOptions,
    gates: Gates | None,
    sections: tuple[str, ...],
    require_verdict: bool,
) -> None:
    """Say whether NEW is faster than BASE, by how much, how certainly, and where the difference lies.

    BASE and NEW are traces that `traceviz report` reads, in any format, or reports saved with `--format json`; one of
    them may be -, standard input. With several NEW, each is compared with BASE and with the NEW before it.

    Several runs per side show how much its runs differ: --group base=run1,run2 --group new=run3,run4. --by groups runs
    recorded with `traceviz collect --tag KEY=VALUE` into sides: traceviz compare runs/ --by model,batch.

    Exits with 1 if a gate fails (--fail-on-regression, --fail-on, --budget, --budgets), and with 4 if a gate cannot be
    judged.
    """
    from traceviz import api
    from traceviz.cli import gate_options as cli_gates

    cli_gates.check_format(output.format_name, gates)
    _check_sections(sections, tables, how.tags())
    members = how.members()
    output.check([*sides, *(run for runs in members.values() for run in runs)])
    with progress_bar_on_stderr() as progress:
        selection, options = part.selection(), part.analysis()
        read = replace(read, progress=progress)
        comparison = api.compare(
            *sides,
            groups=members,
            by=how.tags(),
            base=how.base,
            options=how.options(tables),
            analysis=options,
            selection=selection,
            read=read,
        )
        traces = _two_traces(sides, how) if output.format_name == HTML else None
        flames: tuple[Flame, ...] = ()
        if traces:
            flames = api.flame_differences(*traces, options=options, selection=selection, read=read)
    document, results = _judge_gates(comparison, gates)
    shown = sections or tables.sections(output.format_name)
    layout = replace(page.layout(output.path, shown), figure=output.figure)
    output.write(api.to_text(document, output.format_name, layout, _pictures(flames)))
    cli_gates.conclude(document, results, output.format_name)
    if require_verdict:
        _require_verdicts(comparison)


def _two_traces(sides: tuple[Path, ...], how: _How) -> tuple[Path, Path] | None:
    """Return the traces of a base and one other side; ``None`` for more sides, or if one is a report without tables."""
    from traceviz.compare.sides.load_sides import is_saved_report, one_run

    if len(sides) != _TWO or how.groups or how.by or how.base:
        return None
    base, new = map(one_run, sides)
    return None if is_saved_report(base) or is_saved_report(new) else (base, new)


def _pictures(flames: tuple[Flame, ...]) -> Pictures | None:
    """Return the pictures for the page of the comparison; ``None`` if there are none."""
    from traceviz.report.pictures.values import Pictures

    return Pictures(flames=flames) if flames else None


def _matching(path: str) -> list[str]:
    """Return the paths of a pattern such as ``runs/base-*``; an existing path, or one without a pattern, stays.

    Raises:
        UsageError: nothing matches the pattern.
    """
    if Path(path).exists() or not has_magic(path):
        return [path]
    paths = sorted(glob(path))  # noqa: PTH207 (patterns may be absolute)
    if not paths:
        raise UsageError(f"No run matches the pattern {path!r}.", fix="Check the path.")
    return paths


def _check_sections(sections: tuple[str, ...], tables: _Tables, tags: tuple[str, ...]) -> None:
    """Refuse unknown sections before the work, and not after it."""
    if not sections:
        return
    from traceviz.compare.report.document import SECTIONS

    needed = {"curve": (tables.curve, "--curve TAG"), "scaling": (tables.scaling, "--scaling TAG")}
    needed["cross"] = "cross" if tables.cross or len(tags) == _TWO else "", "--by TAG,TAG --cross"

    for name in sections:
        if name not in SECTIONS:
            raise UsageError.unknown("section", name, SECTIONS)
        if name in needed and not needed[name][0]:
            raise UsageError(
                f"Section {name} is a table that is made where it is asked for.", fix=f"Add {needed[name][1]}."
            )


def _judge_gates(comparison: Comparison, gates: Gates | None) -> tuple[Report, tuple[GateResult, ...]]:
    """Return the document with a section of its gates, and their results; they judge every side but the base."""
    from traceviz import api

    document = api.document(comparison)
    if not gates:
        return document, ()
    from traceviz.gates.gates import add_gate_section, judge_gates
    from traceviz.gates.metrics import Candidate

    several = len(comparison.pairs) > 1
    candidates = [
        Candidate(pair.new.reports, pair.new.label if several else "", pair.judgement) for pair in comparison.pairs
    ]
    results = judge_gates(gates, candidates)
    return add_gate_section(document, results), results


def _require_verdicts(comparison: Comparison) -> None:
    from traceviz.compare.effect import Outcome

    reasons = [_explain_unknown(pair) for pair in comparison.pairs if pair.judgement.outcome is Outcome.UNKNOWN]
    if reasons:
        raise NoVerdictError("Not every side can be judged.", " ".join(f"{reason}." for reason in reasons))


def _explain_unknown(pair: Pair) -> str:
    """Return why a side cannot be judged, with its name."""
    reason = pair.judgement.why.removesuffix(".")
    return reason if pair.new.label in reason else f"{pair.new.label}: {reason}"
