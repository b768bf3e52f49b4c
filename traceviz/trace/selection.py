"""A part of a trace: a time window, one device, one rank."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a trace to keep.

    Args:
        start_ns: Start of the window on the trace's clock; ``None`` for the first event.
        end_ns: End of the window; ``None`` for the end of the capture.
        device: Ordinal of the device whose work is kept. All calls stay, and rows that belong to no device.
        rank: Rank whose events are kept; in a trace without ranks, number of the process in order of pid.
    """

    start_ns: int | None = None
    end_ns: int | None = None
    device: int | None = None
    rank: int | None = None

    @property
    def is_everything(self) -> bool:
        """True if nothing is left out."""
        return self == Selection()

    @property
    def window(self) -> tuple[int | None, int | None] | None:
        """Start and end of the window if only its events are needed, otherwise ``None``.

        A selection of devices or ranks needs events of all times, which show the processes that used a device.
        """
        return (self.start_ns, self.end_ns) if self.device is None and self.rank is None else None
