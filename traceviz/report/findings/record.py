"""The record of a finding: all data about one kind of problem, read by every stage."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from traceviz.report.document import Certainty, Severity

WARNING_SHARE = 0.05
"""Share of the judged time from which a finding is a warning."""
ERROR_SHARE = 0.20
"""Share of the judged time from which a finding is an error, to be fixed first."""

READ_RARELY = "Read results (loss.item(), numpy(), print) every N steps, not in each."
"""Advice about waits for results. Analyses leave it out if the operation that waits has advice of its own."""

ONE_FUNCTION = "One function takes"
"""Claim of findings about one function, whose name follows the figure."""

SeverityRule = Literal["by share", "hint", "warning"]
"""Severity from the share of the judged time at stake; always information; always a warning."""

TimeClass = Literal[
    "device_compute",
    "input",
    "parameter_transfer",
    "communication",
    "host_collective",
    "copy_d2h",
    "copy_h2d",
    "other_device",
    "blocking_copy",
    "synchronisation",
    "migration",
    "device_wait",
    "registration",
    "allocation",
    "stream",
    "first_launch",
    "kernel_launch",
    "launch_queue",
    "compilation",
    "os_call",
    "child_process",
    "profiler",
    "waiting",
    "saving",
    "io",
    "sleep",
    "lock",
    "gil",
    "logging",
    "serialization",
    "import",
    "host",
    "unexplained",
]
"""Keys of the exclusive parts of judged time, and ``device_compute`` for the computing itself."""

Finder = Literal[
    "api_call",
    "full_precision_kernel",
    "idle_class",
    "input",
    "largest_operation",
    "late_collective",
    "layout_kernel",
    "loop_part",
    "memory_peak",
    "pageable_copy",
    "phase",
    "run_part",
    "sampled",
    "small_grid",
    "straggler",
    "uneven_step",
    "waiting_copy",
]
"""Functions that find the place of a finding on the timeline (:mod:`traceviz.pictures.timeline.places`)."""


@dataclass(frozen=True, slots=True)
class TimelinePlace:
    """The interval on the timeline that shows a finding best: the longest one that ``finder`` finds.

    Args:
        finder: Name of the function that finds it.
        label: Description for people; ``{rank}`` stands for the rank that the finding names.
        keys: Classes, kinds or parts that it looks for; empty for any.
    """

    finder: Finder
    label: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRecord:
    """One kind of problem. A code never changes its meaning; a slug names the problem, never the cure.

    Args:
        code: Stable code.
        slug: Name of the problem.
        what: The observation, and the condition that raises the finding.
        why: Why it costs time.
        advice: Things to do, the most promising first.
        only_for: Advice that is given only where causes of some kinds take much of the time: its text, and the kinds.
        misleads: When the finding is raised and should be ignored.
        references: Further reading.
        section: Slug of the report section whose analysis raises it.
        severity: Rule for its severity.
        hint_if: Condition under which the analysis turns it into a hint although it has a share; empty for none.
        part_of: Codes of more precise findings about the same time: if one of them is raised, this one is not.
        half_of: The same for findings about possibly little of that time: if one of them has half of its stake.
        compares_clocks: Its time at stake is idle time of devices while the host does something. It is as uncertain
            as the clock of the device.
        explains: Time classes whose time it explains; ``device_compute`` for a bound on the computing itself.
        certainty: How certain it is that these classes have this cause.
        is_candidate: It may lead the first sentence if it has a time class and a share (see :attr:`can_lead`). Others
            have the time of classes that are candidates themselves.
        label: Name within a sentence; empty for the slug.
        claim: Headline up to the figure, if it leads; ``{rank}`` stands for the rank that the finding names.
        claims_of: Other claims by heading of the finding; the heading is empty for a finding that names no rank.
        counts_later_time: Its time at stake includes time after its classes: it leads only if they are half of it.
        disjoint_from: Codes of findings on other parts of the time of the same classes.
        is_sampled: It comes from samples of all steps of a run; a profiler recorded only a few of these steps.
        is_of_input: The verdict on the input states it.
        is_of_run: Its time at stake is a share of the whole run, not of the judged time.
        is_per_rank: Its time at stake is that of one rank, not the sum of all.
        is_of_ranks: It is about communication between ranks: the rank waits for others, and not the others for it.
        tables: Tables that support it, the most informative first: ``section`` for the first table of a section,
            ``section:1`` for the second, ``section:Other`` for the first whose title starts so.
        replaced_tables: Pairs of tables: if it is raised, the second supports the verdict in place of the first.
        place: Place on the timeline; ``None`` if only a sum over the run shows it.
        supposes: Code of the finding that a better capture raises instead; empty if there is none.
        needs_same_recorder: It is about the set-up of one kind of input pipeline. A comparison looks for it only if
            both sides were recorded in the same way.
    """

    code: str
    slug: str
    what: str
    why: str
    advice: tuple[str, ...]
    only_for: tuple[tuple[str, tuple[str, ...]], ...] = ()
    misleads: str
    references: tuple[str, ...] = ()
    section: str
    severity: SeverityRule = "by share"
    hint_if: str = ""
    part_of: tuple[str, ...] = ()
    half_of: tuple[str, ...] = ()
    compares_clocks: bool = False
    explains: tuple[TimeClass, ...] = ()
    certainty: Certainty = "measured"
    is_candidate: bool = True
    label: str = ""
    claim: str = ""
    claims_of: tuple[tuple[str, str], ...] = ()
    counts_later_time: bool = False
    disjoint_from: tuple[str, ...] = ()
    is_sampled: bool = False
    is_of_input: bool = False
    is_of_run: bool = False
    is_per_rank: bool = False
    is_of_ranks: bool = False
    tables: tuple[str, ...]
    replaced_tables: tuple[tuple[str, str], ...] = ()
    place: TimelinePlace | None = None
    supposes: str = ""
    needs_same_recorder: bool = False

    @property
    def can_lead(self) -> bool:
        """True if it may lead the first sentence; hints and findings without a time class never do."""
        return self.is_candidate and bool(self.explains) and self.severity == "by share"

    def advice_for(self, kinds: Collection[str]) -> tuple[str, ...]:
        """Return the advice for causes of these kinds."""
        unfit = {text for text, fits in self.only_for if not set(fits) & set(kinds)}
        return tuple(text for text in self.advice if text not in unfit)

    def severity_of(self, share: float) -> Severity:
        """Return the severity of a finding with ``share`` (0 to 1) of the judged time at stake."""
        if self.severity != "by share":
            return Severity.INFO if self.severity == "hint" else Severity.WARNING
        if share >= ERROR_SHARE:
            return Severity.ERROR
        return Severity.WARNING if share >= WARNING_SHARE else Severity.INFO


OTHER_THREADS = "host_time:Other threads"
OUTSIDE = "whole_run:1"
"""The time outside of steps, in the order of time."""
COMPUTING = ("cpu_steps", "kernels", "operators", "framework_ops", "host_time", "totals", "totals:1")
ELSEWHERE = ("host_time", "host_waits", "cpu_steps", "kernels", "operators", "framework_ops", "cuda_api", "os_calls")
"""Tables for any other cause, or if no evidence for a cause was recorded."""
INPUT = ("input_pipeline", "host_time", "input_pipeline:1", "os_calls", "host_waits")
LAUNCHES = ("launch", "kernels", "cuda_api")
COPIES = ("copies", "cuda_api", "host_waits")
ALLOCATION = ("cuda_api", "host_waits", "memory")
WAITS = ("host_waits", "cuda_api", "os_calls")
HOST = ("host_time", "host_limits", "host_waits", "cpu_steps")
THREADS = ("host_time", OTHER_THREADS, "host_limits", "host_waits")
SYSTEM = ("os_calls", "host_time", "host_waits")
COMPILATION = ("compilation", "host_time", "host_waits")
RUN = (OUTSIDE, "host_time", "host_waits")
RANKS = ("ranks", "communication", "host_collectives", "host_time")
HOST_COLLECTIVES = ("host_collectives", "ranks", "host_time")
COMMUNICATION = ("communication", "communication:1", "ranks")

BY_CAUSE: dict[str, tuple[str, ...]] = {
    "healthy": COMPUTING,
    "input": INPUT,
    "possible_input": ("host_time", "host_waits", "os_calls", "input_pipeline"),
    "parameter_transfer": COPIES,
    "communication": COMMUNICATION,
    "host_collective": HOST_COLLECTIVES,
    "copy_d2h": COPIES,
    "copy_h2d": COPIES,
    "other_device": COPIES,
    "blocking_copy": ("host_waits", "copies", "cuda_api"),
    "synchronisation": WAITS,
    "device_wait": ("host_waits", "framework_ops", "operators"),
    "registration": ALLOCATION,
    "allocation": ALLOCATION,
    "stream": ALLOCATION,
    "first_launch": ("host_waits", "cuda_api"),
    "kernel_launch": LAUNCHES,
    "launch_queue": LAUNCHES,
    "compilation": COMPILATION,
    "os_call": SYSTEM,
    "child_process": SYSTEM,
    "profiler": ("host_waits", "cpu_steps"),
    "waiting": THREADS,
    "sleep": THREADS,
    "lock": THREADS,
    "gil": THREADS,
    "host": ("host_time", "host_waits", "operators"),
    "unexplained": ("host_time", "host_waits", "idle_gaps"),
    "devices_in_turn": ("device_use", "idle_gaps"),
    "waits-for-work": THREADS,
    **dict.fromkeys(("imports", "preparation", "validation", "between", "after", "shutdown"), RUN),
}
"""Tables that support a cause of the verdict, by its key. Findings have their own in their records."""
