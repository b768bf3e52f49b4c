"""A part of a trace: a time window, one device, one rank."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """What to keep of a trace.

    Args:
        start_ns: Begin of the window on the trace's clock; ``None`` for the first event.
        end_ns: End of the window; ``None`` for the end of the capture.
        device: Ordinal of the device whose work is kept; calls that launched nothing on it stay, as does what belongs
            to no device.
        rank: Rank, else number of the process (in order of pid), whose events are kept.
    """

    start_ns: int | None = None
    end_ns: int | None = None
    device: int | None = None
    rank: int | None = None

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return self == Selection()
