"""A recorded cell: its run folder with tables, as from ``traceviz collect``, and its report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from traceviz.api import report_on
from traceviz.collectors.base import Problem
from traceviz.collectors.run.folder import drop_raw
from traceviz.collectors.run.manifest import Manifest, write_manifest
from traceviz.collectors.this_process import Part
from traceviz.core.errors import TracevizError
from traceviz.core.notebook_repr import Shown
from traceviz.report import Report
from traceviz.runs.run_tables import write_run_tables
from traceviz.untrusted.errors import foreign_errors_in_words


@dataclass(frozen=True, slots=True, repr=False)
class Recorded(Shown):
    """A part of a notebook that was recorded.

    Args:
        folder: The run folder.
        status: ``finished``, ``failed`` or ``interrupted``.
        report: Its report; ``None`` if nothing readable was recorded.
        problems: What went wrong in the recording, one sentence each.
    """

    shown_as: ClassVar[str] = "recorded"
    folder: Path
    status: str
    report: Report | None
    problems: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Recorded({str(self.folder)!r}, {self.status})"


def with_report(part: Part) -> Recorded:
    """Make tables of the recording and analyse them; keep the recording if that fails."""
    manifest, options = part.manifest, part.run.options
    report = None
    try:
        with foreign_errors_in_words("What was recorded cannot be read."):
            rows = write_run_tables(part.folder, keep_private=options.keep_private)
        report = report_on(part.folder)
    except TracevizError as error:
        manifest = manifest.with_problems((Problem("no-tables", f"{error.what} {error.why}".strip(), error.fix),))
    else:
        said = report.verdict
        verdict = {"code": said.code, "sentence": said.sentence, "cause": said.cause}
        manifest = replace(manifest, tables=rows, verdict=verdict)
        if rows and not options.keep_raw:
            drop_raw(part.folder)
    write_manifest(part.folder, manifest)
    return Recorded(part.folder, manifest.status, report, _problems(manifest))


def _problems(manifest: Manifest) -> tuple[str, ...]:
    every = (*(problem for entry in manifest.collectors for problem in entry.problems), *manifest.problems)
    return tuple(dict.fromkeys(f"{problem.message} {problem.fix}".strip() for problem in every))
