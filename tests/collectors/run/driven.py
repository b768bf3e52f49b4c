"""Running ``traceviz collect`` as a user does: a process of its own, its run folder, its manifest."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from click.testing import CliRunner

from tests.collectors.run.drive import KNOWN
from traceviz.cli.main import main
from traceviz.collectors import collect as recording
from traceviz.collectors import registry
from traceviz.collectors.program import supervise
from traceviz.collectors.run.tables import Tables

DRIVER = Path(__file__).with_name("drive.py")


def command(*arguments, collectors="fake"):
    """Return arguments and environment of a recording by the test's ``collectors``, or (``None``) the product's."""
    environment = {**os.environ, **({} if collectors is None else {"TRACEVIZ_TEST_COLLECTORS": collectors})}
    return [sys.executable, str(DRIVER), "collect", *map(str, arguments)], environment


def collect(*arguments, collectors="fake", env=None, **options):
    """Return a recording from its start to its end."""
    line, environment = command(*arguments, collectors=collectors)
    settings = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run(line, check=False, env={**environment, **(env or {})}, **settings)


def collect_here(monkeypatch, *arguments, collectors="fake"):
    """Like :func:`collect`, in this process: no Python has to start for it. The program's output goes elsewhere."""
    chosen = tuple(KNOWN[name]() for name in collectors.split(",") if name)
    monkeypatch.setattr(registry.COLLECTORS, "all", lambda: chosen)
    monkeypatch.setattr(recording, "make_tables", lambda *_, **options: Tables())
    monkeypatch.setattr(supervise, "STALLED_S", 1.0)
    handler = signal.getsignal(signal.SIGINT)
    try:
        return CliRunner().invoke(main, ["collect", *map(str, arguments)])
    finally:
        signal.signal(signal.SIGINT, handler)  # the command ignores it before it ends its process


def begin(*arguments, collectors="fake", **options):
    """Return a recording that is under way; its output goes to nowhere, so that nothing waits for it."""
    line, environment = command(*arguments, collectors=collectors)
    settings = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
    return subprocess.Popen(line, env=environment, **settings)


def manifest(run):
    """Return the manifest of a run folder."""
    return json.loads((run / "manifest.json").read_text())


def python(code):
    """Return a command that runs ``code``."""
    return "--", sys.executable, "-c", code


def wait_for(condition, seconds=60.0):
    """Wait until ``condition()`` holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.01)


def is_alive(pid):
    """Return whether process ``pid`` runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False
