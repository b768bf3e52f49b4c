"""``traceviz explain``: the reasoning behind a finding."""

from __future__ import annotations

import click

from traceviz.cli.options import page_width


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Print the reasoning behind the finding CODE (or its name); without CODE, list all findings.

    Why a report begins with its first sentence: traceviz report TRACE --why.
    """
    from traceviz.render.explain import explain_finding, list_findings
    from traceviz.report.findings.registry import record_of, records

    width = page_width()
    click.echo(explain_finding(record_of(code), width) if code else list_findings(records(), width), nl=False)
