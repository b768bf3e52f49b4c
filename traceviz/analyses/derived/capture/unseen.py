"""Parts of the device activity that a capture does not show, as figures and as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traceviz.analyses.derived.recorded.device_window import DeviceWindow
from traceviz.core.units import counted, format_ns

AT_THE_END = 0.01
"""If devices work until less than this share of the capture is left, the work of the last launches ran after it."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Device activity that was not recorded: over all processes, the latest start, the earliest end, and sums.

    Args:
        begin_ns: Device activity before this time is not known.
        end_ns: Device activity after this time is not known.
        launched_before: Pieces of device work that were launched before the capture.
        without_work: Launches at the ends of the capture without device work.
        reasons: One sentence for each reason.
        sentence: The part that matters for the judged time; empty if little is unknown.
    """

    begin_ns: int
    end_ns: int
    launched_before: int
    without_work: int
    reasons: tuple[str, ...]
    sentence: str


def unseen(
    recorded: tuple[int, int], windows: dict[int, DeviceWindow], least_share: float, *, is_cut: bool = False
) -> Unseen | None:
    """Return the device activity that was not recorded; None if all was.

    Args:
        recorded: Start and end of the time in which device work was recorded.
        windows: The window of each process.
        least_share: The sentence covers unknown times of at least this share of the recorded time.
        is_cut: True if the user cut a part out of the capture; work under way at its edges is then expected.
    """
    every = list(windows.values())
    begin = max((window.begin_ns for window in every), default=recorded[0])
    end = min((window.end_ns for window in every), default=recorded[1])
    launches = sum(window.lacks_first + window.lacks_last for window in every)
    whole = recorded[1] - recorded[0]
    at_edges = max(begin - recorded[0], recorded[1] - end) < AT_THE_END * whole
    if ((begin, end) == recorded and not launches) or (is_cut and at_edges):
        return None
    before = sum(window.launched_before for window in every)
    parts = []
    if begin - recorded[0] >= least_share * whole:
        parts.append(f"in the first {format_ns(begin - recorded[0])}")
    if recorded[1] - end >= least_share * whole:
        parts.append(f"in the last {format_ns(recorded[1] - end)}")
    subject = "device" if len(every) == 1 else "devices"
    sentence = f"What the {subject} did {' and '.join(parts)} of the capture is not known." if parts else ""
    return Unseen(begin, end, before, launches, _reasons(recorded, every), sentence)


def _reasons(recorded: tuple[int, int], windows: list[DeviceWindow]) -> tuple[str, ...]:
    def of(kind: Callable[[DeviceWindow], int]) -> tuple[list[DeviceWindow], str]:
        found = [window for window in windows if kind(window)]
        return found, "" if len(found) == len(windows) else f" of {len(found)} of {len(windows)} processes"

    reasons = []
    found, whose = of(lambda window: window.launched_before if window.begin_ns > recorded[0] else 0)
    if found:
        work = counted(sum(window.launched_before for window in found), "piece")
        until = format_ns(max(window.begin_ns for window in found))
        reasons.append(
            f"The capture begins with {work} of device work{whose} launched before it: what ran until the first of "
            f"them, at {until}, is not known."
        )
    found, whose = of(lambda window: window.held_up_ns)
    if found:
        wait = format_ns(max(window.held_up_ns for window in found))
        until = format_ns(max(window.begin_ns for window in found))
        reasons.append(
            f"The first device work{whose} waited {wait} after its launch while nothing that was recorded ran: work "
            f"from before the capture held it up, and what the devices did until {until} is not known."
        )
    found, whose = of(lambda window: window.lacks_first)
    if found:
        count, until = sum(window.lacks_first for window in found), format_ns(max(window.begin_ns for window in found))
        reasons.append(
            f"The first {count:,} launches{whose} have no device work: what the devices did until "
            f"{until} was not recorded."
        )
    found, whose = of(lambda window: window.lacks_last)
    if found:
        count, after = sum(window.lacks_last for window in found), format_ns(min(window.end_ns for window in found))
        is_late = recorded[1] - min(window.end_ns for window in found) < AT_THE_END * (recorded[1] - recorded[0])
        why = "it ran after the capture" if is_late else f"what the devices did after {after} was not recorded"
        reasons.append(f"The last {count:,} launches{whose} have no device work: {why}.")
    return (*reasons, "None of this time counts as idle.")
