"""Rules as text, for ``traceviz explain``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from traceviz.report.rules import Rule


def explain_rule(rule: Rule, width: int) -> str:
    """Everything about one rule, wrapped to ``width``."""
    parts = [f"{rule.code}  {rule.slug}", ""]
    for heading, text in (("What", rule.what), ("Why it costs time", rule.why)):
        parts += [heading, _wrapped(text, width), ""]
    parts += ["What to do", *(_wrapped(step, width, "- ") for step in rule.advice), ""]
    parts += ["When it misleads", _wrapped(rule.misleads, width)]
    if rule.references:
        parts += ["", "Read on", *(f"  {reference}" for reference in rule.references)]
    return "\n".join(parts) + "\n"


def list_rules(rules: Iterable[Rule], width: int) -> str:
    """One line per rule."""
    lines = [f"{rule.code}  {rule.slug:<30} {rule.what}" for rule in rules]
    return "\n".join(textwrap.shorten(line, width, placeholder=" …") for line in lines) + "\n"


def _wrapped(text: str, width: int, bullet: str = "") -> str:
    indent = "  " + bullet
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=" " * len(indent), break_long_words=False
    )
