"""Make the tables of a run from its recordings: ``python -m traceviz.runs.run_tables RUN``, in its own process.

``traceviz collect`` starts it with fewer garbage collections from the first import on, which would take a tenth of its
time.

Reading a large trace takes memory and may fail; neither must cost the run its exit code or its manifest. And no library
for reading traces is loaded while the program runs.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import NoReturn

from traceviz.analyses.run import analyze
from traceviz.core.errors import TracevizError
from traceviz.core.files import new_folder
from traceviz.core.process import interrupts
from traceviz.core.process.interrupts import Stopped
from traceviz.core.process.temporary import drop_all
from traceviz.core.without_pandas import skip_pandas
from traceviz.parsers.base import Progress, ReadRequest, silent
from traceviz.parsers.registry import trace_readers
from traceviz.parsers.run.folder import read_run
from traceviz.parsers.run.layout import TABLES
from traceviz.render.first_screen import spoken
from traceviz.trace import schema
from traceviz.trace.tables import load, read_manifest, write_tables
from traceviz.trace.trace_folder import is_trace_folder
from traceviz.untrusted.errors import defect, foreign_errors_in_words


def write_run_tables(folder: Path, *, keep_private: bool = False, progress: Progress = silent) -> dict[str, int]:
    """Write ``tables/`` of the run ``folder`` from the recordings under ``raw/``; complete or not at all.

    Returns:
        Number of rows by table.

    Raises:
        TracevizError: as :func:`traceviz.parsers.run.folder.read_run`.
        OutputError: the folder cannot be written, or exists.
    """
    target = folder / TABLES
    left_out = [] if keep_private else ["command line", "host name", "environment", "captured output"]
    provenance = {"source": folder.name, "format": "run", "left_out": left_out}
    with new_folder(target, force=False, replaceable=is_trace_folder) as temporary:
        tables = read_run(folder, ReadRequest(keep_private=keep_private, progress=progress), trace_readers())
        write_tables(temporary, tables, provenance)
    return dict(read_manifest(target)["tables"])


def main(arguments: list[str]) -> int:
    """Write the tables of a run, and print the outcome as lines of JSON.

    The lines hold ``progress``, any number of times; ``tables``, whether they hold the ``whole`` recording, and the
    reason if they have no events; then ``lines`` with the ``verdict``; or ``error``.

    Arguments are the run folder, then optionally ``--keep-private`` and ``--verdict``.
    """
    skip_pandas()
    folder = Path(arguments[0])
    try:
        with foreign_errors_in_words(f"{folder} cannot be read."):
            keep_private = "--keep-private" in arguments
            rows = write_run_tables(folder, keep_private=keep_private, progress=_Reporter())
            why = _unread(folder / TABLES)
            has_events = any(count for name, count in rows.items() if schema.table(name).is_events)
            _answer(tables=rows, whole=not why, unread="" if has_events else why)
            if "--verdict" in arguments:
                _answer(progress=("looking for where the time went", 0, None))
                report = analyze(load(folder / TABLES))
                said = report.verdict
                verdict = {"code": said.code, "sentence": said.sentence, "cause": said.cause}
                _answer(lines=spoken(report), verdict=verdict)
    except TracevizError as error:
        _answer(error={"message": " ".join(filter(None, (error.what, error.why))), "fix": error.fix})
        return error.exit_code
    except Exception as error:
        _answer(error={"message": f"This is a defect of traceviz: {defect(error)}.", "fix": ""})
        raise
    return 0


def _unread(tables: Path) -> str:
    """Return why recordings of a run could not be read; empty if all were."""
    notes = load(tables).arrow("notes").to_pylist()
    return " ".join(note["message"] for note in notes if note["code"] == "source-unreadable")


class _Reporter:
    """A :class:`~traceviz.parsers.base.Progress` that prints a line of JSON ten times a second at most."""

    def __init__(self) -> None:
        self._due = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + 0.1
            _answer(progress=(stage, done, total))


def _answer(**values: object) -> None:
    print(json.dumps(values), flush=True)  # noqa: T201 (`traceviz collect` reads it)


def run() -> NoReturn:
    """Make the tables that the arguments of the process name, and end with the exit code."""
    interrupts.install(drop_all)
    try:
        code = main(sys.argv[1:])
    except Stopped as stopped:
        code = stopped.exit_code
    interrupts.ignore()
    gc.freeze()  # else Python visits all objects before the system gets the memory back anyway
    sys.exit(code)


if __name__ == "__main__":
    run()
