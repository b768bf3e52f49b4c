"""Claims for the headline: one clause for each exclusive part of the judged time. Records of findings have theirs.

A headline is ``claim``, the share of the option that leads, and the base of that share::

    Input-bound: steps wait for data 61.2 % of their time
    One kernel takes 68.7 % of GPU time: softmax_fwd

It has at most 12 words and one figure, which is that of the finding or part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from traceviz.analyses.headline.choice import IN_TURN, INPUT, INPUTS, POSSIBLE_INPUT, UNEXPLAINED, Option
from traceviz.core.units import format_ratio
from traceviz.report import STEADY_STEP_TIME, Finding
from traceviz.report.findings.record import ONE_FUNCTION
from traceviz.report.start import find_start, place_within_sentence

LONGEST_NAME = 44
"""Most characters of a name in a headline."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The first lines of a verdict.

    Args:
        text: One claim.
        figure: The figure in it, as text; empty if nothing was measured.
        consequence: The gain, and the first thing to do; may be empty.
    """

    text: str = ""
    figure: str = ""
    consequence: str = ""


NO_HEADLINE = Headline()

_OF_PARTS: dict[str, tuple[str, str]] = {
    INPUT: ("Input-bound: steps wait for data", ""),
    POSSIBLE_INPUT: ("Possibly input-bound: steps may wait for data", ""),
    "parameter_transfer": ("Parameter transfer: devices wait for parameters", ""),
    "communication": ("Exposed communication: devices only communicate", ""),
    "host_collective": ("Host collectives: ranks exchange data", ""),
    "copy_d2h": ("Copies to the host: devices compute nothing", ""),
    "copy_h2d": ("Copies to the device: nothing computes", ""),
    "other_device": ("Copies on the device: nothing computes", ""),
    "blocking_copy": ("Blocking copies: devices idle during them", "Blocking copies: the program waits"),
    "synchronisation": ("Synchronisation: devices idle while the host waits", "Synchronisation: the program waits"),
    "device_wait": ("Exposed wait: devices idle during it", "Exposed wait: the program waits"),
    "migration": ("Managed memory: devices wait for migrating pages", "Managed memory: pages migrate"),
    "registration": ("Host memory: devices wait until it is pinned", "Host memory: pinning it takes"),
    "allocation": ("Allocation: devices idle while memory is allocated", "Allocation: it takes"),
    "stream": ("Streams: devices wait until they are created", "Streams: creating them takes"),
    "first_launch": ("First use: devices wait for one-time set-up", "First use: one-time set-up takes"),
    "kernel_launch": ("Launch-bound: devices wait for launches", "Launch calls: the program launches work"),
    "launch_queue": ("Queued work: devices idle before it starts", "Queued work: it waits"),
    "compilation": ("Compilation: devices idle while code compiles", "Compilation: it takes"),
    "os_call": ("Host blocked: devices wait for system calls", "Host blocked: the program waits in system calls"),
    "child_process": ("Child processes: devices wait for them", "Child processes: the program waits for them"),
    "profiler": ("Profiler: its own work takes", "Profiler: its own work takes"),
    "waiting": ("Waiting: devices idle while the program waits", "Waiting: the program waits"),
    "saving": ("Saving: devices idle during it", "Saving: the program saves"),
    "io": ("Input and output: devices wait for it", "Input and output: it takes"),
    "sleep": ("Sleep: devices idle while the program sleeps", "Sleep: the program sleeps"),
    "lock": ("Locks: devices idle while the program waits", "Locks: the program waits for other threads"),
    "gil": ("GIL: devices wait for the interpreter lock", "GIL: the program waits for the interpreter lock"),
    "logging": ("Logging: devices wait for it", "Logging: the program writes messages"),
    "serialization": ("Serialization: devices wait for it", "Serialization: converting objects takes"),
    "import": ("Imports: devices wait for them", "Imports: they take"),
    "host": ("Host-bound: devices wait for the host", "Host-bound: the program works"),
    IN_TURN: ("Devices in turn: the average device idles", ""),
    UNEXPLAINED: ("Unexplained: devices idle", "Unexplained: nothing was recorded in"),
}
"""Claims of the exclusive parts: with a device, and without one if that differs."""

_BASES = {
    f"{STEADY_STEP_TIME} of a rank": "of step time",
    STEADY_STEP_TIME: "of step time",
    "steps of the run": "of step time",
    "time from first to last device work": "of the time",
    "time of the devices": "of device time",
    "run": "of the run",
    "GPU time": "of GPU time",
    "API time": "of API time",
    "kernel time": "of kernel time",
    "time in collectives": "of collective time",
}


def base_of(words: str) -> str:
    """Return the base of a share at the end of a headline: ``of step time``, ``of the capture``."""
    if words.startswith("captured time"):
        return "of the capture"
    return _BASES.get(words, f"of the {words}")


def claim_on(subject: str, share: float, share_of: str, name: str = "") -> Headline:
    """Return the headline that a subject takes a share of a time, with a name after a colon if there is one."""
    figure = format_ratio(share)
    named = f": {shorten_middle(name)}" if name else ""
    return Headline(f"{subject} {figure} {base_of(share_of)}{named}", figure)


def claim_of_option(option: Option, finding: Finding | None, *, has_device: bool, is_bound: bool = False) -> Headline:
    """Return the headline of an option that leads.

    Args:
        option: The option.
        finding: The finding that it comes from, if any.
        has_device: True if device work was captured.
        is_bound: True if its time is an upper bound.
    """
    name, subject = "", ""
    if option.record is None or finding is None:
        with_device, alone = _OF_PARTS.get(option.key, ("", ""))
        subject = with_device if has_device or not alone else alone
    else:
        others = dict(option.record.claims_of)
        rank = next((fact.value for fact in finding.evidence if fact.key == "rank"), None)
        subject = others.get(option.label) or (rank is None and others.get("")) or option.record.claim
        name = find_start(finding) if subject == ONE_FUNCTION else ""
        subject = subject.format(rank=rank)
    if not subject:
        label = option.label.partition(": ")[0]
        subject = f"{label[0].upper()}{label[1:]}: it takes"
    made = claim_on(f"{subject} at most" if is_bound else subject, option.share, option.share_of, name)
    if option.key in INPUTS and option.share_of == STEADY_STEP_TIME:
        made = replace(made, text=made.text.replace(base_of(option.share_of), "of their time"))
    return made


_ONCE = frozenset({"first_launch", "compilation", "profiler", "registration", UNEXPLAINED})
"""Parts that a longer run has no more of, or that no change to the program removes: they promise no gain."""
_MOST_GAIN = 20.0
"""Greater gains are not stated exactly: something else would limit the steps long before."""


def describe_gain(option: Option, least: float = 1.0) -> str:
    """Return the gain without the time of an option: ``up to 2.6× faster``; empty if it is small or not known.

    Args:
        option: The option.
        least: Least gain, if it was predicted.
    """
    if option.key in _ONCE:
        return ""
    return describe_gain_of(option.share, least)


def describe_gain_of(share: float, least: float = 1.0) -> str:
    """Return the gain without this share of the time, as text."""
    most = 1 / (1 - share) if share < 1 else _MOST_GAIN
    if most < 1.05:
        return ""
    if most >= _MOST_GAIN:
        return f"over {_MOST_GAIN:.0f}× faster"
    if least >= 1.05:
        return f"{least:.1f} to {most:.1f}× faster" if f"{least:.1f}" != f"{most:.1f}" else f"{most:.1f}× faster"
    return f"up to {most:.1f}× faster"


def say_consequence(gain: str, start: str, fallback: str = "") -> str:
    """Join the gain and the first thing to do: ``Up to 2.6× faster; start at decode (train.py:41)``."""
    first = f"start at {start}" if start else fallback
    text = "; ".join(filter(None, (gain, first)))
    return f"{text[:1].upper()}{text[1:]}"


def shorten_middle(name: str, most: int = LONGEST_NAME) -> str:
    """Shorten a name to ``most`` characters in the middle: its end often distinguishes it from others."""
    text = " ".join(place_within_sentence(name).split())
    if len(text) <= most:
        return text
    end = (most - 1) * 2 // 5
    return f"{text[: most - 1 - end]}…{text[-end:]}"
