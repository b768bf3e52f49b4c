"""Recording a part of this process, such as a cell of a notebook: the same run folder, but no program to start.

::

    folder, raw/NAME, inject.json -> manifest "running" -> sampler as a process, hooks in here
        -> the part runs and ends -> hooks save -> harvest of each collector -> manifest with its end
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import Any

from traceviz.collectors.base import RESOURCES, STACKS, Availability, Companion
from traceviz.collectors.frameworks.injection import hooks_here, write_injection
from traceviz.collectors.run.folder import new_run_folder, release
from traceviz.collectors.run.manifest import Manifest, Status, write_manifest
from traceviz.collectors.run.outcome import ending_of
from traceviz.collectors.run.record import (
    NOT_HARVESTED,
    Prepared,
    check_room,
    harvest_all,
    manifest_before,
    save,
    start_companions,
    stop_companions,
)
from traceviz.collectors.sampler.collector import DESCRIPTION
from traceviz.core.files import explained

COLLECTORS = frozenset({"jax", RESOURCES, STACKS, "tensorflow", "torch"})
"""Collectors that can record a process that is running already."""
NOT_HERE = Availability("unsupported", "It records a program from its start, and this process is running already.")
_PATIENCE_S = 3.0
"""Time that the sampler of resources may take to start, in seconds."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Around:
    """Threads and code outside of the recorded part of a process.

    Args:
        threads: Threads by their identifiers in Python.
        code: The function that runs the part; its callers are not shown either.
        recorder: The function that records the part: it calls ``code``, and its own work is not shown.
    """

    threads: frozenset[int] = frozenset()
    code: CodeType | None = None
    recorder: CodeType | None = None


@dataclass(frozen=True, slots=True)
class _Moment:
    """The clocks at one time, and the processor time of this process and its children until then."""

    unix_ns: int = field(default_factory=time.time_ns)
    monotonic_ns: int = field(default_factory=time.monotonic_ns)
    user_ns: int = field(default_factory=lambda: _used("ru_utime"))
    system_ns: int = field(default_factory=lambda: _used("ru_stime"))

    def usage_until(self, later: _Moment) -> Mapping[str, int]:
        """Return the usage in between; memory is the maximum of the whole process so far."""
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        used = {"user_ns": later.user_ns - self.user_ns, "system_ns": later.system_ns - self.system_ns}
        return {**used, "max_rss_bytes": most}


@dataclass(slots=True)
class Part:
    """A part of this process while it is recorded, and afterwards its results.

    Args:
        run: How it is recorded.
        manifest: Its manifest; complete once the part is over.
        error: The error that ended it, if any; set this before the part is over.
        began: When it started.
    """

    run: Prepared
    manifest: Manifest
    error: BaseException | None = None
    began: _Moment = field(default_factory=_Moment)

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.run.plan.folder


def _used(what: str) -> int:
    groups = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    seconds: float = sum(getattr(resource.getrusage(group), what) for group in groups)
    return round(seconds * 1e9)


@contextmanager
def recorded_part(run: Prepared, around: Around, tell: Tell) -> Iterator[Part]:
    """Record the body. An exception of the body is raised again after the recordings have been collected.

    Args:
        run: How to record.
        around: Threads and code outside of the part.
        tell: Receives lines for the user as they occur.

    Raises:
        OutputExistsError, OutputError: there is no place for the run folder.
        UsageError: this process is being recorded already.
    """
    began = time.monotonic_ns()
    plan, hooks = run.plan, hooks_here()
    part = Part(run, manifest_before(run))
    with new_run_folder(plan.folder, plan.collectors, force=run.options.force) as folder:
        check_room(run)
        with explained(plan.folder):
            settings = write_injection(plan)
            write_manifest(plan.folder, part.manifest)
        companions, problems = start_companions(run, os.getpid())
        try:
            # Many parts end before the sampler has been loaded.
            description, due = run.plan.raw(RESOURCES) / DESCRIPTION, time.monotonic() + _PATIENCE_S
            while RESOURCES in plan.collectors and not description.exists() and time.monotonic() < due:
                time.sleep(0.01)
            stacks_hz = plan.stacks_hz if STACKS in plan.collectors else 0.0
            hooks.begin(str(settings), stacks_hz, around.threads, around.code, around.recorder)
        except BaseException:
            stop_companions(companions)
            raise
        folder.keep()
    part.began = _Moment()
    overhead = {"before_ns": part.began.monotonic_ns - began}
    part.manifest = replace(
        part.manifest,
        pid=os.getpid(),
        started_unix_ns=part.began.unix_ns,
        problems=problems,
        overhead=overhead,
    )
    save(plan.folder, part.manifest, tell)
    try:
        yield part
    except BaseException as error:
        part.error = error
        raise
    finally:
        _finish(part, hooks, companions, tell)


def _finish(part: Part, hooks: Any, companions: tuple[tuple[str, Companion], ...], tell: Tell) -> None:
    """Save and collect the recordings; in any case, stop all our processes."""
    ended, error, complete = _Moment(), part.error, False
    # Status and exit code are those of a program that ends with this error.
    said = "" if error is None else f"Traceback (most recent call last):\n{type(error).__name__}: {error}"
    status: Status = "finished" if error is None else "failed"
    code = 0 if error is None else 1
    if isinstance(error, KeyboardInterrupt):
        status, code = "interrupted", 130
    duration_ns = ended.monotonic_ns - part.began.monotonic_ns
    manifest = replace(
        part.manifest,
        status=status,
        code=code,
        ending=ending_of(status, code=code, number=None, output=said),
        ended_unix_ns=part.began.unix_ns + duration_ns,
        duration_ns=duration_ns,
        usage=part.began.usage_until(ended),
    )
    try:
        hooks.end("the end of the part")
        manifest = manifest.with_problems(stop_companions(companions))
        manifest = harvest_all(part.run, manifest)
        complete = True
    finally:
        if not complete:
            stop_companions(companions)
            manifest = manifest.with_problems((NOT_HARVESTED,))
        release(part.folder)
        part.manifest = manifest
        save(part.folder, manifest, tell)
