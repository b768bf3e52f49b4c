"""A progress bar on stderr for long reads."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from traceviz.core.sanitize import one_line
from traceviz.parsers.base import Progress, silent

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

PATIENCE_S = 0.7
"""Seconds below which reads show no bar."""
LONGEST_STAGE = 100
"""Characters of the stage in the bar, which may name a file."""


@contextmanager
def progress_bar(*, enabled: bool) -> Iterator[Progress]:
    """Yield a :class:`Progress` that draws one bar on stderr and removes it at the end."""
    if not enabled:
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    bar = RichProgress(console=Console(stderr=True), transient=True)
    try:
        yield _Bar(bar)
    finally:
        bar.stop()


class _Bar:
    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._begin = time.monotonic()
        self._task = bar.add_task("reading", total=None)
        self._started = False

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if not self._started and time.monotonic() - self._begin > PATIENCE_S:
            self._bar.start()
            self._started = True
        from rich.markup import escape

        name = escape(one_line(stage)[:LONGEST_STAGE])
        self._bar.update(self._task, description=name, completed=done, total=total)
