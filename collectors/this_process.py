"""Recording a part of this process, as ``%%traceviz`` does with a cell of a notebook.

>>> with recorded_here(CollectOptions()) as part:
...     train(model)
>>> part.folder, part.manifest.status
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from traceviz.collectors import registry
from traceviz.collectors.base import Window
from traceviz.collectors.collect import run_folder
from traceviz.collectors.frameworks.injection import hooks_here
from traceviz.collectors.run.plan import CollectOptions, make_plan
from traceviz.collectors.run.record import Prepared
from traceviz.collectors.run.within import COLLECTORS, NOT_HERE, Around, Part, Tell, recorded_part
from traceviz.version import __version__

__all__ = ["WHOLE", "Around", "CollectOptions", "Part", "prepare_here", "recorded_here", "watch_frameworks"]

LONGEST_S = 30.0
"""Default length of a recording by the profilers: they hold all of it in memory until it is saved."""
WHOLE = Window(0, None, 0.0, LONGEST_S)
"""From the start of the part."""


def watch_frameworks() -> None:
    """Install our hooks before a recording: of JAX, they see only functions that are jitted afterwards.

    Raises:
        UsageError: ``traceviz collect`` records this process.
    """
    hooks_here()


def prepare_here(options: CollectOptions, command: Sequence[str]) -> Prepared:
    """Return the plan of :func:`recorded_here`. Nothing is created.

    Raises:
        UsageError, MissingToolError: there is no such collector, or one cannot record here.
    """
    states = {
        collector.name: registry.state_of(collector) if collector.name in COLLECTORS else NOT_HERE
        for collector in registry.COLLECTORS.all()
    }
    words = tuple(command)
    plan = make_plan(replace(options, nvtx=False), words, run_folder(options, words), states)
    collectors = tuple(collector for collector in registry.COLLECTORS.all() if collector.name in plan.collectors)
    return Prepared(plan, options, collectors, states, dict(os.environ), {"traceviz": __version__})


@contextmanager
def recorded_here(
    options: CollectOptions,
    command: Sequence[str] = ("notebook", "cell"),
    around: Around | None = None,
    tell: Tell | None = None,
) -> Iterator[Part]:
    """Record the body into a run folder like one of ``traceviz collect``; readers make its tables.

    The window counts from the start of the body: :data:`WHOLE`, or its own steps. An error that ends the body may be
    set as ``part.error`` instead of being raised.

    Args:
        options: What to record, and where to write it.
        command: The command that the manifest names.
        around: Threads and callers whose stacks are not part of it.
        tell: Receives lines for the user as they occur.

    Raises:
        UsageError, MissingToolError: as :func:`prepare_here`; or this process is being recorded already.
        OutputExistsError, OutputError: there is no place for the run folder.
    """
    with recorded_part(prepare_here(options, command), around or Around(), tell or (lambda _: None)) as part:
        yield part
