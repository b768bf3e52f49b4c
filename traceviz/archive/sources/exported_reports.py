"""Reports of nsys whose export lies beside them: two files of one recording, of which only one is added.

::

    runs/train.nsys-rep     needs nsys to be read: left out if its export is added at the same time
    runs/train.sqlite       its export by `nsys profile --export=sqlite` or `nsys stats`

Without this rule every such recording would count twice. The first bytes must be those of an
export: a file that only has its name is no reason to leave out the report. These 16 bytes are cheap to read anywhere,
even in compressed tar files, which are unpacked anyway. Whether an export can be read as a whole only shows when it is
read: if it cannot, its error names the report (:func:`with_report_advice`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePath

from traceviz.archive.sources.item import Item, Refused
from traceviz.archive.sources.locations import Location
from traceviz.archive.storage.addresses import is_web
from traceviz.core.errors import TracevizError
from traceviz.scrub.formats.registry import REPORT_SUFFIXES

EXPORT = ".sqlite"
EXPORTED = "exported"
"""Code of reports that are left out."""
_MAGIC = b"SQLite format 3\0"
"""First bytes of every SQLite file (https://www.sqlite.org/fileformat.html, 1.3)."""

Heads = Callable[[Iterable[tuple[str, int]]], Iterator[tuple[str, bytes | None]]]
"""Gives the first bytes of files, each with the given length; ``None`` for a file that cannot be read."""


def export_of(report: str) -> str:
    """Path or URL of the export beside a report; empty if it is no report."""
    ending = next((suffix for suffix in REPORT_SUFFIXES if report.endswith(suffix)), "")
    return report[: -len(ending)] + EXPORT if ending and not report.endswith(f"/{ending}") else ""


def companions(name: str) -> tuple[str, ...]:
    """Paths or URLs beside a file that are read with it, if they exist.

    For a report, its export, which is read if nsys is missing; for an export, its report, as only that has the command
    line, whose secrets may stand in both.
    """
    if export := export_of(name):
        return (export,)
    if not name.endswith(EXPORT) or name.endswith(f"/{EXPORT}"):
        return ()
    return tuple(name[: -len(EXPORT)] + ending for ending in REPORT_SUFFIXES)


def exported(names: Collection[str], heads: Heads) -> dict[str, str]:
    """The reports among some files whose export is one of them; the export by the report.

    Args:
        names: Paths of files that would be added.
        heads: Gives their first bytes.
    """
    present = set(names)
    pairs = {name: export for name in names if (export := export_of(name)) in present}
    exports = list(dict.fromkeys(pairs.values()))
    whole = (
        {name for name, head in heads((name, len(_MAGIC)) for name in exports) if head == _MAGIC} if exports else set()
    )
    return {report: export for report, export in pairs.items() if export in whole}


def exported_by_name(sources: Collection[str]) -> dict[str, str]:
    """The same for files that a user named one by one, by a pattern, or together with their folder."""
    folders = tuple(f"{source.rstrip('/')}/" for source in sources)
    pairs = {
        source: export
        for source in sources
        if not is_web(source) and (export := export_of(source)) and (export in sources or export.startswith(folders))
    }
    return {report: export for report, export in pairs.items() if _begins_as_export(export)}


def reports_by_export(pairs: Mapping[str, str]) -> dict[str, str]:
    """The names of the reports that are left out for an export, by its path."""
    reports: dict[str, str] = {}
    for report, export in sorted(pairs.items()):
        name = PurePath(report).name
        reports[export] = f"{reports[export]}, {name}" if export in reports else name
    return reports


def left_out(name: str, export: str) -> Refused:
    """A report that is not added."""
    return Refused(name, EXPORTED, f"It is added from {PurePath(export).name} beside it, which nsys exported from it.")


def with_report_advice(error: str, item: Item, longest: int) -> str:
    """The error of an export that cannot be read, with advice: its report may be readable."""
    if not item.report:
        return error[:longest]
    how = "unpack it and name it" if item.kind == "member" else "name it"
    advice = f" {item.report} beside it was left out, as it is the same recording: to add that instead, {how} alone."
    return error[: longest - len(advice)].rstrip() + advice


def _begins_as_export(export: str) -> bool:
    try:
        return Location(export, PurePath(export).name).head(len(_MAGIC)) == _MAGIC
    except (TracevizError, OSError):
        return False
