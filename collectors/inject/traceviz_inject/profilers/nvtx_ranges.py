"""NVTX ranges around steps, epochs, and the parts of a step, in a domain of their own.

The range of a step is named ``step 12``; :mod:`..phases.step_parts` names the parts. Epochs end at other times than
steps, so their ranges do not nest with the others.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .. import exits, hooks, process
from ..facts import frameworks
from ..phases import step_parts
from ..phases.step_parts import PARTS
from ..status import Status, guarded
from ..step_clock import CLOCK
from . import nvtx_client

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..config import Settings

COLLECTOR = "nvtx"
DOMAIN = "traceviz"
"""Domain of our ranges, which distinguishes them from the program's own."""

PACKAGE = "nvtx._lib.lib"
"""The compiled half of the package ``nvtx``, if the program uses it."""


def install(settings: Settings) -> None:
    """Make ranges from now on. The tool is only asked at the first range: most Pythons never make one."""
    ranges = Ranges(settings.raw_of(COLLECTOR))
    CLOCK.listen(ranges.step_begins, ranges.step_ends)
    PARTS.listen(ranges.begins, ranges.ends, ranges.epoch_begins, ranges.epoch_ends)
    hooks.when_imported(PACKAGE, ranges.mend)


class Ranges:
    """The ranges of this process, and their counts.

    Args:
        folder: Folder of the collector; this process owns one below it once it makes ranges.
    """

    def __init__(self, folder: str) -> None:
        self._parent = folder
        self._domain: Any = None
        self._is_off = False
        self._status: Status | None = None
        self._counts = dict.fromkeys(("step", "epoch", *step_parts.NAMES), 0)
        self._completed = 0
        self._stepping_thread = 0
        self._epoch: int | None = None

    def step_begins(self, number: int) -> None:
        """Start the range of a step."""
        if self._is_open():
            self._stepping_thread = threading.get_ident()
            self._count("step")
            self._domain.push(f"step {number}")
            if not number & (number - 1):  # 0, 1, 2, 4, 8, ...: enough for a program that is killed
                self._tell("recording")

    def step_ends(self, number: int, complete: bool) -> None:  # noqa: ARG002, FBT001 called by the clock
        """End it, complete or not; another thread could only end a range of its own."""
        self._completed += complete
        if self._stepping_thread == threading.get_ident():
            self._stepping_thread = 0
            self._domain.pop()

    def begins(self, part: str) -> None:
        """Start the range of a part."""
        if self._is_open():
            self._count(part)
            self._domain.push(part)

    def ends(self, part: str) -> None:  # noqa: ARG002 the innermost
        """End it."""
        if self._domain is not None:
            self._domain.pop()

    def epoch_begins(self, number: int) -> None:
        """Start the range of an epoch, after the end of the previous one."""
        self.epoch_ends()
        if self._is_open():
            self._count("epoch")
            self._epoch = self._domain.start(f"epoch {number}")

    def epoch_ends(self) -> None:
        """End it, if one is in progress."""
        if self._epoch is not None:
            self._domain.end(self._epoch)
            self._epoch = None

    def mend(self, package: ModuleType) -> None:
        """Have the program's own ranges recorded if its package would leave them out.

        From 0.2.12 on it asks the tool whether a domain is enabled, and emits nothing if the answer is no. Older tools
        do not know the question, and the missing answer counts as no. Yet they record the domains.
        """
        facts: dict[str, Any] = {"program_nvtx": _version_of_package()}
        if hasattr(package, "DomainHandle") and hasattr(package.DomainHandle, "enabled") and self._is_open():
            answers = package.DomainHandle(DOMAIN).enabled()
            facts["program_nvtx_mended"] = not answers
            if not answers:
                # This constructor of domains asks no tool: they record everything.
                def new(cls: Any, name: str | None = None) -> Any:
                    made = object.__new__(cls)
                    made.handle = package.DomainHandle(name)
                    return made

                package.Domain.__new__ = staticmethod(new)
        self._facts_of_package = facts

    _facts_of_package: dict[str, Any] = {}  # noqa: RUF012 replaced, never changed

    def _is_open(self) -> bool:
        """Return whether there is a tool; asks once."""
        if self._domain is None and not self._is_off:
            self._open()
        return not self._is_off

    def _open(self) -> None:
        try:
            self._domain = nvtx_client.open_domain(DOMAIN)
        except nvtx_client.NvtxError as error:
            self._is_off = True
            self._tell("off", detail=str(error))
            return
        for part in step_parts.NAMES:
            self._domain.prepare(part)
        exits.on_end(self._at_end)

    def _at_end(self, reason: str) -> None:
        """Write how many ranges there were, so that their arrival can be checked."""
        if process.claimed():
            self._tell("saved", ended_by=reason)

    def _count(self, what: str) -> None:
        self._counts[what] += 1

    def _tell(self, state: str, **facts: Any) -> None:
        if not process.claimed():
            return
        if self._status is None:
            self._status = Status(process.own_folder(self._parent), COLLECTOR)
        counts = {what: count for what, count in self._counts.items() if count}
        self._status.update(
            state=state,
            steps_recorded=self._completed,  # a range that only the end of the program ends is no step
            ranges=counts,
            emitted=sum(counts.values()),
            source=CLOCK.source or self._status["source"],
            threads=self._status["threads"] or guarded(frameworks.threads)(frameworks.driving()),
            **self._facts_of_package,
            **facts,
        )


@guarded
def _version_of_package() -> str:
    from importlib.metadata import version  # noqa: PLC0415 only if the program has the package

    return version("nvtx")
