"""Reports of nsys with an export in the same folder: two files of one recording. Only one of them is added.

::

    runs/train.nsys-rep     needs nsys to be read; skipped if its export is added at the same time
    runs/train.sqlite       its export by `nsys profile --export=sqlite` or `nsys stats`

Without this rule every such recording would count twice. A report is skipped only if the other file starts like an
export; a matching name is not enough. These 16 bytes are cheap to read anywhere, even in compressed tar files, which
are unpacked anyway. Damage of the export only shows when it is read. Its error then names the report
(:func:`with_report_advice`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePath

from traceviz.archive.sources.hashes import Item, Refused
from traceviz.archive.sources.locations import Location
from traceviz.archive.storage.addresses import is_web
from traceviz.core.errors import TracevizError
from traceviz.scrub.formats.registry import REPORT_SUFFIXES

EXPORT = ".sqlite"
EXPORTED = "exported"
"""Code of skipped reports."""
_MAGIC = b"SQLite format 3\0"
"""First bytes of every SQLite file (https://www.sqlite.org/fileformat.html, 1.3)."""

Heads = Callable[[Iterable[tuple[str, int]]], Iterator[tuple[str, bytes | None]]]
"""Returns the first bytes of files, each with the given length; ``None`` for a file that cannot be read."""


def export_of(report: str) -> str:
    """Return the path or URL of the export next to a report; empty if the file is not a report."""
    ending = next((suffix for suffix in REPORT_SUFFIXES if report.endswith(suffix)), "")
    return report[: -len(ending)] + EXPORT if ending and not report.endswith(f"/{ending}") else ""


def companions(name: str) -> tuple[str, ...]:
    """Return paths or URLs of files that are read together with a file, if they exist.

    For a report this is its export, which is read if nsys is missing. For an export it is its report: only the report
    has the command line, whose secrets may occur in both.
    """
    if export := export_of(name):
        return (export,)
    if not name.endswith(EXPORT) or name.endswith(f"/{EXPORT}"):
        return ()
    return tuple(name[: -len(EXPORT)] + ending for ending in REPORT_SUFFIXES)


def find_exported(names: Collection[str], heads: Heads) -> dict[str, str]:
    """Return the reports whose export is among the files, with the export of each.

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


def find_exported_by_name(sources: Collection[str]) -> dict[str, str]:
    """Do the same for files that a user named one by one, by a pattern, or together with their folder."""
    folders = tuple(f"{source.rstrip('/')}/" for source in sources)
    pairs = {
        source: export
        for source in sources
        if not is_web(source) and (export := export_of(source)) and (export in sources or export.startswith(folders))
    }
    return {report: export for report, export in pairs.items() if _begins_as_export(export)}


def reports_by_export(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the reports that are skipped for an export, by its path."""
    reports: dict[str, str] = {}
    for report, export in sorted(pairs.items()):
        name = PurePath(report).name
        reports[export] = f"{reports[export]}, {name}" if export in reports else name
    return reports


def refuse_exported(name: str, export: str) -> Refused:
    """Return the refusal of a report that is not added."""
    return Refused(name, EXPORTED, f"It is added from {PurePath(export).name} beside it, which nsys exported from it.")


def with_report_advice(error: str, item: Item, longest: int) -> str:
    """Add advice to the error of an export that cannot be read: its report may be readable."""
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
