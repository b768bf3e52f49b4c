"""``traceviz`` and ``python -m traceviz``: the command line as a process, with its streams and signals.

Only the guards are imported first: a signal may come during the other imports.
"""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

from traceviz.core.process import interrupts, streams
from traceviz.core.process.interrupts import Stopped

_OBJECTS_PER_COLLECTION = 50_000
"""Imports create hundreds of thousands of objects that stay. Collecting them again and again would waste time."""


def run() -> NoReturn:
    """Run the command that the arguments name, and end with its exit code."""
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    try:
        code = _guarded()
    except Stopped as stopped:
        code = _end_early(stopped)
    _skip_last_collections()
    sys.exit(code)


def _guarded() -> int:
    interrupts.install(_tidy)
    streams.guard()
    code = _command()
    interrupts.check()
    _tidy()
    interrupts.ignore()
    return code


def _command() -> int:
    try:
        from traceviz.cli.main import main  # noqa: PLC0415 (after streams and signals are guarded)

        main(prog_name="traceviz")
    except SystemExit as ending:
        return _code(ending)
    except Exception:
        interrupts.check()  # the error may be a request to end that an import or compiled code converted
        raise
    return 0


def _code(ending: SystemExit) -> int:
    return ending.code if isinstance(ending.code, int) else int(ending.code is not None)


def _end_early(stopped: Stopped) -> int:
    """Clean up after a request to end; a further request ends this, too."""
    try:
        with interrupts.uninterrupted():
            _tidy()
            print(stopped.message, file=sys.stderr)  # noqa: T201
            interrupts.ignore()
    except Stopped:
        pass
    return stopped.exit_code


def _skip_last_collections() -> None:
    """Skip Python's two collections at its exit, which free memory that the system gets back anyway.

    DuckDB needs them: without them it prints complaints about remaining objects on stderr.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()


def _tidy() -> None:
    """Remove temporary files, if any were made."""
    temporary = sys.modules.get("traceviz.core.process.temporary")
    if temporary is not None:
        temporary.drop_all()


if __name__ == "__main__":
    run()
