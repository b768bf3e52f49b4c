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
    from traceviz.render.rules import explain_rule, list_rules
    from traceviz.report.rules import RULES, rule

    click.echo(explain_rule(rule(code), page_width()) if code else list_rules(RULES, page_width()), nl=False)
