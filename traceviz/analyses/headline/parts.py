"""Options for the first sentence.

They are the exclusive parts of the judged time except computing (device activities, and the causes of their idle time),
and findings that explain some of it more precisely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from traceviz.analyses.derived.calls.short_names import shortened
from traceviz.analyses.derived.causes.attribution import describe_first_use, host_causes
from traceviz.analyses.derived.causes.kinds import HOST, KIND_LABELS
from traceviz.analyses.derived.causes.parts import find_culprit, part_times
from traceviz.analyses.derived.frames import end_ns, having, intervals, knowing, of_process
from traceviz.analyses.derived.host.classes import HOST_CLASSES, LABELS
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.headline.choice import (
    COMPUTE,
    IN_TURN,
    INPUT,
    MOST,
    MUCH,
    POSSIBLE_INPUT,
    UNEXPLAINED,
    WORK_WAITS,
    Option,
)
from traceviz.analyses.headline.judged_time import Judged
from traceviz.analyses.headline.sentences import continue_sentence
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.report import Claim, Finding, Severity
from traceviz.report.findings.registry import record_of

LISTED = 0.2
"""A kind is listed within its group if it takes this part of the group's time."""
ALONE = 0.9
"""A single kind with this part of the time is named without its share."""
WORTH_SAYING = 0.005
"""Parts below this share are not listed."""

RECURS = 3
"""Waits of this number recur. Fewer may be pauses between measurements."""
_WORK_ARRIVES = (
    r"\bqueue[.]py:\d+ get$|^<built-in (method|function) (e?poll|select|accept|recv\w*)\b"
    r"|\b(selectors|socket|connection)[.]py:\d+ (select|_?poll|recv\w*|accept)$"
    r"|^(epoll_p?wait2?|accept4?)$"
)
"""Functions in which a program waits for what others send it. ``poll`` and ``recv`` alone are as often waits for
loaders or for another rank."""

_PLURALS = {**KIND_LABELS, "driver": "the driver", "optimizer": "the optimizer", "runtime": "the framework's runtime"}


@dataclass(frozen=True, slots=True)
class Words:
    """Texts for a part: its label, and the sentence about it.

    Placeholders of the sentence: ``{share}`` is its share, ``{whole}`` the time that it is a share of, ``{idle}`` that
    the devices idle. ``{calls}`` is where it happened, in brackets or empty. ``{mostly}`` and ``{above}`` are the same
    after a comma. ``alone`` is the sentence if no device was captured.
    """

    label: str
    sentence: str
    alone: str = ""


_IN = "in {share} of {whole}"
_CALLS, _MOSTLY, _ABOVE = "{calls}", "{mostly}", "{above}"


def _words(label: str, activity: str, place: str = "", *, alone: str = "", heading: str = "") -> Words:
    """Return the texts for an activity of the host while devices idle.

    Args:
        label: The label of the part.
        activity: Clause about the host.
        place: Placeholder of its place.
        alone: The clause if no device was captured, if it differs.
        heading: Heading of the sentence; the label if omitted.
    """
    start = f"{heading or label[0].upper() + label[1:]}: {_IN}"
    return Words(label, f"{start} {{idle}} while {activity}{place}.", f"{start} {alone or activity}{place}.")


PARTS: dict[str, Words] = {
    INPUT: Words("input", f"Input: {_IN} the program waits for its next batch.", f"Input: {_IN} it waits."),
    "parameter_transfer": Words(
        "parameter transfer",
        f"Parameter transfer: {_IN} parameters are copied to the device, and nothing computes{_MOSTLY}.",
    ),
    "communication": Words(
        "exposed communication", f"Exposed communication: {_IN} devices communicate and compute nothing."
    ),
    "host_collective": _words(
        "collectives on the host",
        "ranks exchange data through the host",
        _MOSTLY,
        alone="the program waits in them",
    ),
    "copy_d2h": Words(
        "copies to the host", f"Copies to the host: {_IN} results are copied from the device, and nothing computes."
    ),
    "copy_h2d": Words(
        "copies to the device", f"Copies to the device: {_IN} data is copied to the device, and nothing computes."
    ),
    "other_device": Words(
        "copies and fills on the device",
        f"Copies and fills on the device: {_IN} the device moves or fills its own memory, and computes nothing.",
    ),
    "blocking_copy": _words(
        "blocking copies", "the host waits in a copy call", _CALLS, alone="the program waits in a copy call"
    ),
    "synchronisation": _words(
        "synchronisation", "the host waits for it", _CALLS, alone="the program waits for a device"
    ),
    "device_wait": _words("waits for the device", "the program waits for a result", _CALLS, heading="Exposed wait"),
    "migration": _words(
        "migration of managed memory",
        "the host uses managed memory whose pages migrate one by one (cudaMemPrefetchAsync moves them at once)",
    ),
    "registration": _words(
        "registration of host memory", "the host pins buffers for the device", _CALLS, heading="Registration"
    ),
    "allocation": _words("allocation", "memory is allocated or freed", _CALLS),
    "stream": _words("creation of streams", "streams are created or destroyed", _CALLS, heading="Streams"),
    "first_launch": _words("first use", "a first call sets up a device, library or code", _CALLS),
    "kernel_launch": _words(
        "kernel launches", "the host is in launch calls", _CALLS, alone="the program launches work"
    ),
    "launch_queue": Words(
        "work launched and not begun",
        f"Launched, not begun: {_IN} {{idle}} while work that was launched has not begun.",
    ),
    "compilation": _words("compilation", "code is compiled or loaded", _CALLS),
    "os_call": _words(
        "calls of the operating system",
        "the host waits in the operating system",
        _CALLS,
        alone="the program waits in the operating system",
        heading="Host blocked",
    ),
    "child_process": _words(
        "waits for child processes",
        "the host waits for child processes",
        _CALLS,
        alone="the program waits for child processes",
        heading="Child processes",
    ),
    "profiler": _words("the profiler", "the profiler itself works"),
    "waiting": _words("waits of the program", "the program waits", _CALLS, heading="Waiting"),
    "saving": _words("saving", "the program saves", _ABOVE),
    "io": _words("input and output", "the program reads or writes", _ABOVE),
    "sleep": _words("sleep", "the program sleeps", _ABOVE),
    "lock": _words("locks and queues", "the program waits for another thread or process", _ABOVE),
    "gil": _words("waits for the GIL", "the program waits for other threads that run Python", _ABOVE, heading="GIL"),
    "logging": _words(
        "logging", "messages or metrics are written", _ABOVE, alone="the program writes messages or metrics"
    ),
    "serialization": _words("serialization", "objects become bytes or text, or back", _ABOVE),
    "import": _words("imports", "modules are imported", _ABOVE),
    HOST: Words("work of the host", f"Host-bound: {_IN} the device waits for the host{_MOSTLY}."),
}
"""Parts in the order of the report."""

_MEANINGS = {c.key: c.meaning for c in HOST_CLASSES}


def find_parts(trace: TraceView, judged: Judged, input_copies_ns: int, within: str) -> Iterator[Option]:
    """Yield all parts of judged time except computing, with their sentences. With computing, they are all of it.

    If no device was captured, the host's work counts as computing.

    Args:
        trace: The trace.
        judged: Its judged time.
        input_copies_ns: Exposed copies to the device that are part of the input.
        within: The event in which most of the host's own work is done; may be empty.
    """
    causes, times = host_causes(trace), dict(part_times(trace))
    by_part = {key: having(causes, "part", key) for key in causes["part"].unique().to_list()}
    times["copy_h2d"] = times.get("copy_h2d", 0) - input_copies_ns
    for key, words in PARTS.items():
        if judged.share(times.get(key, 0)) >= WORTH_SAYING and (judged.has_device or key != HOST):
            own = by_part.get(key, causes.clear())
            option = _make_option(key, words, times[key], own, judged, within)
            first = describe_first_use(trace, own) if key == "first_launch" else ""
            yield replace(option, sentence=f"{option.sentence} {first}") if first else option
    if judged.in_turn >= WORTH_SAYING:
        # This idle time of devices that share a process has no class, because one of the devices works.
        share, label, evidence = judged.in_turn, "devices that idle in turn", "busy time of each device"
        idles = f"in {format_ratio(share)} of {judged.whole} the average device idles while another one works"
        sentence, time_ns = f"Devices in turn: {idles}.", round(share * judged.total_ns)
        yield Option(IN_TURN, label, time_ns, share, judged.words, "measured", evidence, sentence)
    if judged.share(times.get(UNEXPLAINED, 0)) >= WORTH_SAYING:
        yield _unexplained(trace, times[UNEXPLAINED], judged)


def list_parts(judged: Judged, options: tuple[Option, ...]) -> tuple[Claim, ...]:
    """Return the exclusive parts of the judged time: computing, those of ``options``, and the small ones as one."""
    own = [option for option in options if not option.within and option.key != IN_TURN]
    own.sort(key=lambda option: option.key == UNEXPLAINED)
    computing = judged.times[COMPUTE]
    rest = judged.total_ns - computing - sum(option.time_ns for option in own)
    words, work, small = judged.words, "device work", "parts that are not listed"
    return (
        Claim(COMPUTE, LABELS[COMPUTE], computing, judged.compute_share, words, "measured", work),
        *(Claim(o.key, o.label, o.time_ns, o.share, o.share_of, o.certainty, o.evidence) for o in own),
        Claim("other", "other", rest, judged.share(rest), words, "measured", small),
    )


def find_own_work(trace: TraceView) -> pl.DataFrame:
    """Return causes that are work of the host itself: rows of :func:`host_causes`."""
    return having(host_causes(trace), "part", HOST)


def _make_option(  # noqa: PLR0917 (a part, its time and where that was)
    key: str, words: Words, time_ns: int, causes: pl.DataFrame, judged: Judged, within: str
) -> Option:
    share = judged.share(time_ns)
    template = words.sentence if judged.has_device or not words.alone else words.alone
    calls = _name_culprit(causes, line=judged.sampled)
    sentence = template.format(
        share=format_ratio(share),
        whole=judged.whole,
        idle=judged.idle,
        calls=f" ({calls})" if calls else "",
        above=f", above all {calls}" if calls else "",
        mostly=list_kinds(causes, judged, within) if key == HOST else f", above all in {calls}" if calls else "",
    )
    count = int(causes["calls"].sum())
    evidence = _MEANINGS.get(key, "what the devices did was recorded")
    if count:
        evidence = f"{counted(count, 'event')}{f': {calls}' if calls else ''}"
    return Option(key, words.label, time_ns, share, judged.words, "measured", evidence, sentence, culprit=calls)


def _unexplained(trace: TraceView, time_ns: int, judged: Judged) -> Option:
    share, evidence = judged.share(time_ns), "no recorded event covers it"
    time = f"in {format_ratio(share)} of {judged.whole}"
    if not judged.has_device:
        sentence = f"Unexplained: {time} {judged.unexplained}."
    elif judged.sees_host:
        gap = _describe_gap(trace, time_ns) if share >= MUCH else ""
        sentence = f"Unexplained: {time} {judged.idle}, and {judged.unexplained}{gap}."
    else:
        sentence = f"Mostly idle: {time} {judged.idle}, and what the host did meanwhile was not recorded."
    return Option(UNEXPLAINED, "unexplained", time_ns, share, judged.words, "unexplained", evidence, sentence)


def _describe_gap(trace: TraceView, unexplained_ns: int) -> str:
    """Describe the one gap between host events with most of the unexplained time, after a comma; empty if none has it.

    Its neighbours are the longest event that ended shortly before it, and the first event after it::

        device  ###                    ##
        host    |-train_function-| |s|             |-tf.constant-|
        gap                           ^-----------^
    """
    longest = (0, 0, 0)
    for rank in trace.ranks:
        idle = judged_time(trace, rank).subtract(trace.rank_busy.get(rank, IntervalSet.empty()))
        if len(idle):
            place = int(idle.durations.argmax())
            longest = max(longest, (int(idle.durations[place]), int(idle.starts[place]), rank))
    length, start, rank = longest
    if length < MOST * unexplained_ns:
        return ""
    tables = ("nvtx", "host_ops", "cuda_api", "os_calls")
    columns = ("start_ns", end_ns(), "process_id", pl.col("name").cast(pl.String))
    events = of_process(pl.concat([trace.frame(name, *columns) for name in tables]), rank)
    encloses = (pl.col("start_ns") <= start) & (pl.col("end_ns") >= start + length)  # as steps do
    events = events.filter((pl.col("end_ns") > pl.col("start_ns")) & ~encloses)
    free = IntervalSet.span(start, start + length).subtract(intervals(events))
    place = int(free.durations.argmax()) if len(free) else 0
    length = int(free.durations[place]) if len(free) else 0
    if length < MOST * unexplained_ns:
        return ""
    begin, end = int(free.starts[place]), int(free.ends[place])
    by_length = (pl.col("end_ns") - pl.col("start_ns"), "name")
    ended = events.filter(pl.col("end_ns").is_between(begin - length, begin)).sort(by_length)["name"].to_list()
    following = events.filter(pl.col("start_ns") >= end).sort("start_ns", "end_ns", descending=[False, True])["name"]
    before = f" after {shortened(ended[-1])}" if ended else ""
    after = f"{' and' if before else ''} before {shortened(following[0])}" if len(following) else ""
    return f", mostly in one gap of {format_ns(length)}{before}{after}" if before or after else ""


def list_kinds(causes: pl.DataFrame, judged: Judged, within: str = "") -> str:
    """List the kinds of ``causes`` with most of their time, as shares of judged time, and the main event in it."""
    total = int(causes["time_ns"].sum())
    if not total:
        return ""
    kinds = causes.group_by("kind").agg(pl.col("time_ns").sum()).sort("time_ns", "kind", descending=[True, False])
    listed = kinds.filter(pl.col("time_ns") >= LISTED * total).rows()
    if len(listed) == 1 and listed[0][1] >= ALONE * total:
        said = f", mostly {_PLURALS[listed[0][0]]}"
    else:
        said = f": {' and '.join(f'{_PLURALS[kind]} ({format_ratio(judged.share(time))})' for kind, time in listed)}"
    found = find_culprit(causes, line=judged.sampled)
    is_most = found is not None and found.time_ns >= MOST * total  # then it says more than the events around it
    if within and not is_most and not (found and found.words.startswith(within)):
        return f"{said}, mostly within {within}" if ":" in said else f"{said} within {within}"
    return f"{said}, above all {found.words}" if found else said


def _name_culprit(causes: pl.DataFrame, *, line: bool) -> str:
    """Return the name that takes most of the time of ``causes``, with its place; may be empty."""
    found = find_culprit(causes, line=line)
    return found.words if found else ""


def find_precise_options(
    findings: tuple[Finding, ...],
    judged: Judged,
    causes: pl.DataFrame,
    *,
    input_copies: bool = False,
    is_network: bool = True,
) -> Iterator[Option]:
    """Yield options from ``findings``, except from those that are only for information.

    Args:
        findings: All findings.
        judged: The judged time.
        causes: Causes of its idle time: rows of :func:`host_causes`.
        input_copies: True if copies to the device are part of the input.
        is_network: True if a framework may have run the program. Otherwise the program chose the precision of its
            matrices itself.
    """
    for finding in findings:
        record = record_of(finding.code)
        if not record.can_lead or finding.severity is Severity.INFO or not finding.cost_ns:
            continue
        if finding.code == "TV405" and not is_network:
            continue
        if finding.code == "TV603" and judged.has_device:  # the threads of loaders may wait while the device works
            continue
        within = frozenset[str](record.explains)
        within = within | {INPUT} if input_copies and "copy_h2d" in within else within
        inside = judged.share(_time_in_operators_of(causes, within)) if record.counts_later_time else 0.0
        within = within | _find_prepared_parts(causes) if record.counts_later_time else within
        share = finding.share or 0.0
        of = finding.share_of or judged.words
        message = finding.message
        if "%" not in message:
            message = f"{message} At stake: {format_ratio(share)} of the {of}."
        label = finding.heading or record.label or finding.slug.replace("-", " ")
        sentence = message if finding.heading else f"{label[0].upper()}{label[1:]}: {continue_sentence(message)}"
        claim = finding.slug, label, finding.cost_ns, share, of, record.certainty, finding.code
        yield Option(*claim, sentence, within, record, inside=inside)


def _time_in_operators_of(causes: pl.DataFrame, parts: frozenset[str]) -> int:
    """Return the time of the host in the operator that has most of the time of ``parts``.

    An operator that reads a result prepares a copy, launches it and waits. Without the read, all three are saved::

        operator   |--_local_scalar_dense----------------|
                   | prepares | cudaMemcpy | synchronise |
    """
    own = causes.filter(pl.col("part").is_in(list(parts)))
    sums = knowing(own, "operator").group_by("operator").agg(pl.col("time_ns").sum())
    largest = sums.filter(pl.col("time_ns") >= MOST * int(own["time_ns"].sum()))["operator"]
    inside = pl.col("part").is_in([*parts, HOST, "kernel_launch"]) & pl.col("operator").is_in(largest.implode())
    return int(causes.filter(inside)["time_ns"].sum())


def _find_prepared_parts(causes: pl.DataFrame) -> frozenset[str]:
    """Return the parts in which the host prepares work for the device: launches, and operators if most launch work.

    A host that waits has nothing prepared. What it then prepares has no cause of its own: without the wait, the device
    would work during it. A function of the program is such a cause, and so is an operator that launches nothing::

        device  ####|                        |####
        host    wait|-operator-|-launch-|...|           without the wait, this was ready
        host    wait|-collect-----|-operator-|-launch-| the function has a cause of its own
    """
    own, launches = having(causes, "part", HOST), having(causes, "part", "kernel_launch")
    launching = pl.concat([launches["operator"], launches["range"]]).drop_nulls().unique().implode()
    prepares = pl.col("kind").is_in(["operator", "optimizer"])
    prepares &= pl.col("cause").is_in(launching) | pl.col("operator").is_in(launching)
    is_prepared = int(own.filter(prepares)["time_ns"].sum()) >= MOST * int(own["time_ns"].sum())
    return frozenset({"kernel_launch", "launch_queue", *([HOST] if is_prepared else [])})


def find_waits_for_work(trace: TraceView, judged: Judged) -> Iterator[Option]:
    """Yield the waits of a program for its next request or message, if they recur: it then limits all other gains.

    ::

        device    |####|           |####|           |####|
        host    |-schedule-|-get-|-schedule-|-get-|-schedule-|
        without           |--get---|        |--get---|            the scheduler: requests come no sooner
    """
    waits = host_causes(trace).filter(pl.col("part").is_in(["waiting", "lock", "os_call"]))
    waits = waits.filter(matches(pl.col("cause"), _WORK_ARRIVES))
    time_ns, count, where = int(waits["time_ns"].sum()), int(waits["calls"].sum()), _name_culprit(waits, line=True)
    if not judged.has_device or 0 < count < RECURS or judged.share(time_ns) < WORTH_SAYING:
        return
    share, times = judged.share(time_ns), f"{counted(count, 'time')}, " if count else ""
    sentence = (
        f"Waits for work: in {format_ratio(share)} of {judged.whole} {judged.idle} while the program waits for its "
        f"next request or message ({times}{where}). Time saved elsewhere would lengthen these waits."
    )
    within = frozenset[str]({COMPUTE})
    yield Option(WORK_WAITS, "waits for work", time_ns, share, judged.words, "measured", where, sentence, within)


def suspect_input(share: float, time_ns: int, judged: Judged, sentence: str) -> Option:
    """Return the input as a suspected cause: host time without launches that no recorded range explains."""
    evidence = f"{format_ratio(share)} of host time without launches, and no range of data loading"
    within = frozenset({"os_call", HOST, UNEXPLAINED})
    return Option(
        POSSIBLE_INPUT, "input, possibly", time_ns, share, judged.words, "suspected", evidence, sentence, within
    )
