"""Subject of the first sentence: the judged time, and the share of it in which devices compute."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.analyses.derived.frames import of_process, unions_by
from traceviz.analyses.derived.host.classes import class_times, sees_host
from traceviz.analyses.derived.judged_time import judged_time, judged_words, within_sentence
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.headline.choice import COMPUTE

LEAST_USED = 0.05
"""A device with less work than this share of the busiest one's counts as unused."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The judged time of all ranks.

    Args:
        times: Nanoseconds by key of the class, summed over ranks; they add up to ``total_ns``.
        words: Text that names the time.
        has_device: True if device work was captured. Otherwise the host counts as the device.
        devices: Number of devices that work.
        in_turn: Share in which the average device of several idles while another one of its process works.
        sees_host: True if anything of the host was recorded.
        sampled: True if stacks were sampled. Lines are then those that ran.
        has_os_calls: True if calls of the operating system were recorded.
    """

    times: dict[str, int]
    words: str
    has_device: bool
    devices: int
    in_turn: float
    sees_host: bool
    sampled: bool = False
    has_os_calls: bool = False

    @property
    def unexplained(self) -> str:
        """Clause about unexplained time: what was recorded of the host, and does not cover it."""
        what = "what the host does" if self.has_device else "what the program does"
        if self.sampled:
            return f"neither events nor samples of the main thread say {what}"
        if self.has_os_calls:
            return "the main thread is in no recorded call"
        return f"nothing recorded says {what}" if self.has_device else f"nothing was recorded of {what}"

    @property
    def total_ns(self) -> int:
        """Length of the judged time."""
        return sum(self.times.values())

    def share(self, time_ns: int) -> float:
        """Return ``time_ns`` as a share of the judged time."""
        return time_ns / self.total_ns if self.total_ns else 0.0

    @property
    def compute_share(self) -> float:
        """Share of the judged time in which a device computes."""
        return self.share(self.times[COMPUTE])

    @property
    def whole(self) -> str:
        """Name of the judged time within a sentence."""
        return within_sentence(self.words)

    @property
    def device(self) -> str:
        """Subject of sentences about the devices."""
        return "the device" if self.devices <= 1 else "a device"

    @property
    def opening(self) -> str:
        """Subject of sentences about the devices, at the start of a sentence."""
        return f"{self.device[0].upper()}{self.device[1:]}"

    @property
    def idle(self) -> str:
        """Clause for idle devices, for use within a sentence."""
        return "the device idles" if self.devices <= 1 else "no device works"


def measure_judged_time(trace: TraceView) -> Judged:
    """Return the judged time of ``trace``."""
    windows = {rank: judged_time(trace, rank) for rank in trace.ranks}
    times = class_times(trace, windows)
    return Judged(
        times,
        judged_words(trace),
        bool(trace.rank_busy),
        len(trace.device_busy),
        _share_in_turn(trace),
        sees_host(trace),
        sampled=bool(trace.tables.rows("stacks")),
        has_os_calls=bool(trace.tables.rows("os_calls")),
    )


def _share_in_turn(trace: TraceView) -> float:
    """Return the share of judged time in which the average device idles while another one of its process works."""
    lost = whole = 0.0
    for rank in trace.ranks:
        window = judged_time(trace, rank)
        whole += window.total
        if sum(process == rank for process, _ in trace.owners) <= 1:
            continue
        work = of_process(trace.device_work, rank)
        own = unions_by(work, "device_id")
        busy = [work.intersect(window).total for work in own.values()]
        used = [time for time in busy if time >= LEAST_USED * max(busy)]
        if len(used) > 1:
            lost += trace.rank_busy[rank].intersect(window).total - sum(used) / len(used)
    return lost / whole if whole else 0.0
