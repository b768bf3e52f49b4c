"""The settings: the file that the variable TRACEVIZ_INJECT names, written before the program started."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_FIRST, _STEPS = 10, 20
"""The default window."""


class Window:
    """The part of the run that is recorded.

    Args:
        first_step: First step recorded, counted from 0.
        steps: Number of steps recorded; ``None`` for all that follow.
        delay_s: Seconds after the start of the program at which recording starts; ``None`` to start at ``first_step``.
        duration_s: Seconds recorded; ``None`` for a number of steps.
    """

    __slots__ = ("delay_s", "duration_s", "first_step", "steps")

    def __init__(
        self,
        first_step: int = _FIRST,
        steps: int | None = _STEPS,
        delay_s: float | None = None,
        duration_s: float | None = None,
    ) -> None:
        self.first_step = first_step
        self.steps = steps
        self.delay_s = delay_s
        self.duration_s = duration_s

    @property
    def is_default(self) -> bool:
        """True if the user named neither steps nor a time."""
        return not self.is_timed and (self.first_step, self.steps) == (_FIRST, _STEPS)

    @property
    def is_timed(self) -> bool:
        """True if recording starts at a time, not at a step."""
        return self.delay_s is not None


class Settings:
    """The contents of the settings file.

    Args:
        folder: The folder for all raw recordings.
        collectors: Names of the collectors that record inside the program.
        window: The part of the run that they record.
        device_tracer: The one collector that may trace the GPU; ``None`` if no two of them would.
        options: Further settings by collector.
    """

    __slots__ = ("collectors", "device_tracer", "folder", "options", "window")

    def __init__(
        self,
        folder: str,
        collectors: tuple[str, ...] = (),
        *,
        window: Window | None = None,
        device_tracer: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = folder
        self.collectors = collectors
        self.window = window or Window()
        self.device_tracer = device_tracer
        self.options = dict(options or {})

    def raw_of(self, collector: str) -> str:
        """Return the folder of the recordings of ``collector``."""
        return os.path.join(self.folder, collector)  # noqa: PTH118 pathlib costs start-up time

    def traces_device(self, collector: str) -> bool:
        """Return whether ``collector`` may trace the GPU: CUPTI serves one tool at a time."""
        return self.device_tracer in (None, collector)


def load(path: str) -> Settings:
    """Read the settings.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON.
    """
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 pathlib costs start-up time
        document = json.load(file)
    window = document.get("window") or {}
    return Settings(
        folder=os.path.join(os.path.dirname(os.path.abspath(path)), "raw"),  # noqa: PTH100, PTH118, PTH120
        collectors=tuple(document.get("collectors") or ()),
        window=Window(
            first_step=int(window.get("first_step") or 0),
            steps=window.get("steps"),
            delay_s=window.get("delay_s"),
            duration_s=window.get("duration_s"),
        ),
        device_tracer=document.get("device_tracer"),
        options=document.get("options"),
    )
