"""Records of findings as text, for ``traceviz explain``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from traceviz.report.findings.record import FindingRecord


def explain_finding(record: FindingRecord, width: int) -> str:
    """Format one record, wrapped to ``width``."""
    parts = [f"{record.code}  {record.slug}", ""]
    for heading, text in (("What", record.what), ("Why it costs time", record.why)):
        parts += [heading, _wrapped(text, width), ""]
    parts += ["What to do", *(_wrapped(step, width, "- ") for step in record.advice), ""]
    parts += ["When it misleads", _wrapped(record.misleads, width)]
    if record.references:
        parts += ["", "Read on", *(f"  {reference}" for reference in record.references)]
    return "\n".join(parts) + "\n"


def list_findings(records: Iterable[FindingRecord], width: int) -> str:
    """List records, one line each."""
    lines = [f"{record.code}  {record.slug:<30} {record.what}" for record in records]
    return "\n".join(textwrap.shorten(line, width, placeholder=" …") for line in lines) + "\n"


def _wrapped(text: str, width: int, bullet: str = "") -> str:
    indent = "  " + bullet
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=" " * len(indent), break_long_words=False
    )
