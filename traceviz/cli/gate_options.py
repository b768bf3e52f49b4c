"""Options of commands that can fail a build: gates, and the outputs for continuous integration.

>>> @main.command()
... @gate_options(comparing=True)
... def compare(..., gates: Gates | None) -> None: ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceviz.cli.boundary import say
from traceviz.core.errors import UsageError
from traceviz.render.options import FINDINGS, NOTES

if TYPE_CHECKING:
    from traceviz.gates.gates import GateResult, Gates
    from traceviz.report import Report

Command = TypeVar("Command", bound=Callable[..., Any])
GITHUB, JUNIT = "github", "junit"
GATES = "gates"
"""Section that no analysis makes: a report with gates has it."""
PARTS = frozenset({FINDINGS, NOTES})
"""Parts of a report that are named like sections: all analyses make them."""
SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable of GitHub Actions with the file that it shows as the summary of a job."""


def gate_options(*, comparing: bool = False) -> Callable[[Command], Command]:
    """Give a command the options of gates, and call it with ``gates`` in place of their values.

    Args:
        comparing: True if the command has a base, so that it can detect a regression.
    """
    options = [
        click.option(
            "--fail-on", type=click.Choice(["warning", "error"]), help="Fail if a finding is at least this severe."
        ),
        click.option(
            *("--budget", "budgets"),
            multiple=True,
            metavar="EXPR",
            help='Fail if a figure breaks its limit, e.g. "input_wait<=5%"; may be repeated.',
        ),
        click.option(
            *("--budgets", "budget_file"),
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            metavar="FILE",
            help="Read gates from this TOML file.",
        ),
    ]
    if comparing:
        options.insert(
            0,
            click.option(
                "--fail-on-regression",
                metavar="SHARE",
                help="Fail if steps are longer beyond chance, by SHARE, e.g. 5%.",
            ),
        )

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_gates(*args: Any, **kwargs: Any) -> Any:
            values = {name: kwargs.pop(name, None) for name in ("fail_on", "fail_on_regression", "budget_file")}
            gates = gates_of(kwargs.pop("budgets"), comparing=comparing, **values)
            return command(*args, gates=gates, **kwargs)

        decorated: Any = with_gates
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def gates_of(
    budgets: tuple[str, ...],
    fail_on: str | None = None,
    fail_on_regression: str | None = None,
    budget_file: Path | None = None,
    *,
    comparing: bool = False,
) -> Gates | None:
    """Return the gates of the options, and those of a file that the options do not set; ``None`` if there are none.

    Raises:
        UsageError: an option is not a gate, or is a gate of another command.
    """
    if not (budgets or fail_on or fail_on_regression or budget_file):
        return None
    from traceviz.analyses.registry import entries
    from traceviz.gates.budgets import Budget, parse_share
    from traceviz.gates.gates import Gates, for_one_side, gates_from_toml
    from traceviz.report import Severity

    gates = Gates(
        tuple(Budget.parse(text) for text in budgets),
        None if fail_on is None else Severity(fail_on),
        None if fail_on_regression is None else parse_share(fail_on_regression),
    )
    if budget_file is not None:
        try:
            text = budget_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{budget_file} cannot be read.", f"{error}.") from None
        gates = gates.over(gates_from_toml(text, str(budget_file)))
    entries(gates.sections)  # a section that does not exist is reported before the work, not after
    return gates if comparing else for_one_side(gates)


def check_format(name: str, gates: Gates | None) -> None:
    """Refuse a format that shows only gates if there are none.

    Raises:
        UsageError: the format is refused.
    """
    if name == JUNIT and not gates:
        raise UsageError(
            "--format junit lists gates, and there are none.",
            fix='Set one: --fail-on warning, --budget "input_wait<=5%" or --budgets FILE.',
        )


def sections_needed(sections: Collection[str], gates: Gates | None) -> set[str] | None:
    """Return the sections to analyse, so that all gates can be judged; ``None`` for all.

    Raises:
        UsageError: a section does not exist.
    """
    from traceviz.analyses.registry import ANALYSES

    named = {name for name in sections if not (gates and name == GATES)}
    known = (*ANALYSES.names(), *PARTS)
    for name in sorted(named.difference(known)):  # an error also if all are analysed
        raise UsageError.unknown("section", name, known)
    if not sections or not named.isdisjoint(PARTS) or (gates and gates.needs_all):
        return None
    return {*named, *gates.sections} if gates else named


def judge_report(
    report: Report, gates: Gates | None, sections: Collection[str] = ()
) -> tuple[Report, tuple[GateResult, ...]]:
    """Return a report with a section of its gates, and their results.

    Args:
        report: The report, with all sections that the gates need.
        gates: The gates to judge it by.
        sections: Sections to show, in addition to that of the gates; if empty, all.

    Raises:
        UsageError: a limit does not fit its figure.
    """
    if not gates:
        return report, ()
    from traceviz.gates.gates import add_gate_section, judge_gates
    from traceviz.gates.metrics import Candidate

    results = judge_gates(gates, (Candidate((report,)),))
    if sections:  # the verdict and the findings stay, as gates depend on them
        report = replace(
            report,
            sections=tuple(section for section in report.sections if section.slug in sections),
            skipped=tuple(skip for skip in report.skipped if skip.slug in sections),
        )
    return add_gate_section(report, results), results


def conclude(report: Report, results: Sequence[GateResult], format_name: str) -> None:
    """Finish after the report is printed: write the summary of the job, and raise for the exit code.

    Raises:
        GateFailedError: a gate failed.
        NoVerdictError: none failed, and one cannot be judged.
    """
    if format_name == GITHUB:
        _summarise(report)
    if results:
        from traceviz.gates.gates import check

        check(results)


def _summarise(report: Report) -> None:
    """Append the report to the summary of the job, if GitHub Actions requests one.

    If the summary cannot be written, stderr reports it, and the command does not fail.
    """
    path = os.environ.get(SUMMARY)
    if not path:
        return
    from traceviz.render.options import RenderOptions
    from traceviz.render.registry import renderer

    try:
        with Path(path).open("a", encoding="utf-8") as summary:
            summary.write(renderer("markdown").render(report, RenderOptions()))
    except OSError as error:
        say(f"traceviz: {SUMMARY} cannot be written: {error.strerror}")
