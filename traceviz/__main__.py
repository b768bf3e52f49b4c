"""``traceviz`` and ``python -m traceviz``: the command line as a process, with its streams and signals.

Nothing but what guards it is imported first: a signal may come while the rest is.
"""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

from traceviz.core.process import interrupts, streams
from traceviz.core.process.interrupts import Stopped

_OBJECTS_PER_COLLECTION = 50_000
"""Imports make hundreds of thousands of objects that stay: looking through them again and again is time for nothing."""


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
        from traceviz.cli.main import main  # noqa: PLC0415 (it is guarded by then)

        main(prog_name="traceviz")
    except SystemExit as ending:
        return _code(ending)
    except Exception:
        interrupts.check()  # it may be what the request made of an import, or of compiled code
        raise
    return 0


def _code(ending: SystemExit) -> int:
    return ending.code if isinstance(ending.code, int) else int(ending.code is not None)


def _end_early(stopped: Stopped) -> int:
    """Tidy up after a request to end; a further one is not waited for."""
    try:
        with interrupts.uninterrupted():
            _tidy()
            print(stopped.message, file=sys.stderr)  # noqa: T201
            interrupts.ignore()
    except Stopped:
        pass
    return stopped.exit_code


def _skip_last_collections() -> None:
    """Python looks through all objects twice when it ends, to free memory that the system is about to have back.

    DuckDB wants just that: on stderr it complains of what is left of it.
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
