"""The collector that lets py-spy sample the program: Python stacks with the compiled functions that they call.

py-spy runs in its own process and stops the program for each sample, so its cost slows the program. It records only if
the user requests it. The sampler inside the program (collector ``stacks``) needs no right to inspect other processes.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import ClassVar

from traceviz.collectors.base import PYSPY, Availability, Collector, Companion, Harvest, Plan, Problem
from traceviz.collectors.program.companion_process import last_words, start_recorder
from traceviz.untrusted.json_documents import read_object

FILE, LOG, STATUS = "stacks.jsonl", "py-spy.log", "status.json"
_PATIENCE_S = 30.0
"""Time limit for py-spy to write its samples and for us to convert them."""
_SCOPE = "proc/sys/kernel/yama/ptrace_scope"


class PySpyCollector(Collector):
    """Records the stacks of the program and of its worker processes.

    Args:
        root: The root folder of the kernel's files.
    """

    name: ClassVar[str] = PYSPY
    title: ClassVar[str] = "Python and native stacks"

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def availability(self) -> Availability:
        """Return ready if py-spy is installed, and this user may inspect processes that are not children of py-spy."""
        path = find_pyspy()
        if path is None:
            fix = f"{sys.executable} -m pip install py-spy"
            return Availability("not-installed", "There is no py-spy on PATH nor beside this Python.", fix)
        try:
            scope = (self.root / _SCOPE).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            scope = ""
        if scope not in ("", "0") and os.geteuid() != 0:
            detail = f"{path} may not look into a program that it did not start (ptrace_scope is {scope})."
            return Availability("not-permitted", detail, "sudo sysctl kernel.yama.ptrace_scope=0")
        return Availability("ready", f"{path}; records only where --with names it")

    def start(self, plan: Plan, pid: int) -> Companion | None:
        """Start the module that runs py-spy; ``None`` if that fails, which :meth:`harvest` reports."""
        folder, path = plan.raw(self.name), find_pyspy()
        arguments = ("--program", str(path), "--rate", f"{plan.stacks_hz:g}")
        return start_recorder(
            "traceviz.collectors.pyspy", plan, pid, folder / LOG, arguments=arguments, patience_s=_PATIENCE_S
        )

    def harvest(self, plan: Plan) -> Harvest:
        """Return the folder of each process that py-spy sampled."""
        folder = plan.raw(self.name)
        folders = tuple(sorted(path.parent for path in folder.glob(f"*/{FILE}")))
        facts = read_object(folder / STATUS)
        if folders and facts.get("lost"):
            message = "py-spy was killed and started again: what it had sampled until then is lost."
            return Harvest(folders, (Problem("recorder-restarted", message),), facts)
        if folders:
            return Harvest(folders, (), facts)
        message = f"py-spy recorded nothing. {last_words(folder / LOG)}".strip()
        return Harvest((), (Problem("no-stacks", message),), facts)


@cache
def find_pyspy() -> str | None:
    """Return the path of py-spy: on PATH, or in the folder of this Python's scripts."""
    return shutil.which("py-spy") or shutil.which("py-spy", path=sysconfig.get_path("scripts"))
