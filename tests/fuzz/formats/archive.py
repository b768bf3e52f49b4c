"""Archives: their markers, catalogue, manifests, tables and saved reports; and packed sources that are added to one."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.archive.small_archives import documented
from tests.fuzz.cases import Depth, Format
from tests.fuzz.formats.kineto import contents as kineto_files
from tests.fuzz.formats.xplane import contents as xplane_files
from tests.fuzz.mutations import folders
from tests.fuzz.oracle import Fault, check_command, check_page, check_report
from traceviz import Archive
from traceviz.api import to_text
from traceviz.archive.runners.local import SerialRunner
from traceviz.core.errors import TracevizError

_QUERIES = (
    "SELECT name, sum(dur_ns) FROM kernels GROUP BY name ORDER BY 2",
    "SELECT * FROM catalogue",
    "SELECT format, count(*) FROM notes GROUP BY format",
)


Task = Callable[[Archive], None]
_COMMANDS = (
    ("list",),
    ("list", "--columns", "all"),
    ("show", "a0"),
    ("report",),
    ("verify",),
    ("query", "SELECT * FROM catalogue"),
    ("query", "SELECT count(*) FROM kernels"),
    ("trend", "step_median"),
)
_DEFECT = re.compile(r"defect: (\w+) at (\S+):\d+")
"""Reason of a quarantine if a reader raised an error that is not ours."""


def _samples(folder: Path) -> None:
    documented(folder / "documented")
    sources = folder / "sources"
    sources.mkdir()
    (sources / "a.pt.trace.json").write_bytes(kineto_files()["rank"])
    (sources / "b.xplane.pb").write_bytes(xplane_files()["training"])
    for source in sources.iterdir():
        os.utime(source, (1_700_000_000, 1_700_000_000))  # packed files hold it
    Archive(folder / "added").add(sources, runner=SerialRunner())
    in_turn = Archive(folder / "added-in-turn")  # two segments of the catalogue
    for source in sorted(sources.iterdir()):
        in_turn.add(source, runner=SerialRunner())
    shutil.copytree(folder / "added", folder / "removed")
    removed = Archive(folder / "removed")
    removed.remove(removed.rows()["trace_id"][0])
    packed = folder / "packed"
    packed.mkdir()
    with zipfile.ZipFile(packed / "traces.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.write(sources / "a.pt.trace.json", "a.pt.trace.json")
        file.write(sources / "b.xplane.pb", "deep/b.xplane.pb")
    with tarfile.open(packed / "traces.tar.gz", "w:gz") as tar:
        tar.add(sources / "a.pt.trace.json", "runs/a.pt.trace.json")
    shutil.rmtree(sources)


def _examine(path: Path, depth: Depth) -> str:
    """List, query, report on, verify and extend an archive; add other folders to a new one."""
    if not (path / "archive.json").exists() and any(path.glob("traces.*")):
        return _examine_sources(path, depth)
    outcomes = {_outcome(path, task) for task in (_listed, *_tasks(depth))}
    if depth.reports or depth.whole:
        for task in (_verified, _exported):
            _outcome(path, task)
    if depth.whole:
        for words in _COMMANDS:
            check_command(["archive", words[0], str(path), *words[1:]])
    errors = sorted(outcomes - {"report"})
    return errors[0] if errors else "report"


def _tasks(depth: Depth) -> tuple[Task, ...]:
    """Return the tasks; only a share of the archives gets the slow ones."""
    if depth.whole or depth.reports:
        return _asked, _reported
    return {0: (_asked,), 1: (_reported,)}.get(depth.random.randrange(8), ())


def _examine_sources(path: Path, depth: Depth) -> str:
    archive = Archive(path.with_name("archive"))
    try:
        added = archive.add(path, runner=SerialRunner())
    except TracevizError as error:
        return type(error).__name__
    for trace in added.quarantined:
        found = _DEFECT.search(trace.error)
        if found:
            raise Fault("defect", found[1], found[2], trace.error)
    if depth.whole or depth.reports:
        check_command(["archive", "list", str(path.with_name("archive"))])
        check_command(["archive", "add", str(path.with_name("again")), str(path), "--workers", "1"])
    return "report" if added.added else "quarantined" if added.quarantined else "refused"


def _outcome(path: Path, task: Task) -> str:
    try:
        task(Archive(path))
    except TracevizError as error:
        return type(error).__name__
    return "report"


def _listed(archive: Archive) -> None:
    archive.rows()


def _asked(archive: Archive) -> None:
    for query in _QUERIES:
        archive.query(query)


def _reported(archive: Archive) -> None:
    report = archive.report()
    check_report(report)
    ids = archive.rows().filter(state="ready")["trace_id"].to_list()
    for trace_id in ids[:2]:
        with suppress(TracevizError):  # not every trace has a saved report
            check_page(to_text(archive.show(trace_id)), "archive show")


def _verified(archive: Archive) -> None:
    archive.verify()


def _exported(archive: Archive) -> None:
    ids = archive.rows().filter(state="ready")["trace_id"].to_list()
    place = Path(archive.store.url).parent / "exported"
    archive.export(*ids[:2], folder=place)


ARCHIVE = Format(
    "archive",
    _samples,
    {folders.CELLS: 5, folders.JSON: 5, folders.FOOTER: 1, folders.BYTES: 2, folders.rearrange: 2},
    _examine,
)
