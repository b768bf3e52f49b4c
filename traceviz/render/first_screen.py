"""What the first screen of a report shows: the verdict, where the time went, what to do about it, what to look at next.

The choice is a value, the same for every medium; renderers only draw it. A medium with little room asks for less
:class:`Detail`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from traceviz.render.options import FINDINGS, GATES, NOTES
from traceviz.render.rows import absence, blocks_for_people, by_time_at_stake, is_share, number_of, time_at_stake
from traceviz.render.text import ELLIPSIS
from traceviz.report import Bar, Bars, Fact, Finding, Grid, Note, Report, Row, Section, Severity, Verdict
from traceviz.units import counted, format_value


@dataclass(frozen=True, slots=True)
class Detail:
    """How much a first screen shows.

    Args:
        findings: Findings with their evidence and first advice; others are named.
        rows: Rows of a table.
        tables: Tables behind the largest cause.
        parts: Parts of a bar; smaller ones are one.
        notes: Notes that are more than information.
        facts: Facts of the evidence of a finding.
        characters: Length of one text, half of that of the verdict; whole sentences as far as they fit.
    """

    findings: int = 3
    rows: int = 6
    tables: int = 2
    parts: int = 8
    notes: int = 2
    facts: int = 4
    characters: int = 250


DETAILS = (
    Detail(),
    Detail(rows=4),
    Detail(rows=3, parts=6),
    Detail(findings=2, rows=4, parts=6),
    Detail(findings=2, rows=3, parts=6),
    Detail(findings=2, rows=3, parts=6, notes=1, characters=200),
    Detail(findings=2, rows=4, tables=1, parts=6, notes=1, characters=200),
    Detail(findings=2, rows=3, tables=1, parts=6, notes=1, facts=2, characters=200),
    Detail(findings=1, rows=3, tables=1, parts=6, notes=1, facts=2, characters=200),
    Detail(findings=1, rows=0, tables=0, parts=4, notes=1, facts=2, characters=200),
    Detail(findings=1, rows=0, tables=0, parts=3, notes=0, facts=2, characters=120),
)
"""From the most to the least: a medium takes the first that it has room for."""


def most_lines(width: int) -> int:
    """Lines that a first screen may have on a page of ``width`` cells."""
    return 45 if width >= 100 else 4_800 // width


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """What is shown, in this order.

    Args:
        run: Facts about the run.
        verdict: The first sentence.
        bars: Where the time of the whole run went, and that of its steps.
        findings: Those that matter, with the evidence that the verdict does not state, and their first advice.
        others: The names of the other findings, in words; empty where there are none.
        tables: Sections of one table each: what is behind the largest cause.
        rows: How many rows of them.
        gates: The results of gates, where some were set.
        notes: What may mislead.
        unseen: What was not measured, in words.
        more: How to see the rest.
    """

    run: tuple[Fact, ...]
    verdict: Verdict
    bars: tuple[Bars, ...]
    findings: tuple[Finding, ...]
    others: str
    tables: tuple[Section, ...]
    rows: int
    gates: Section | None
    notes: tuple[Note, ...]
    unseen: str
    more: str


_RUN_BARS = (("whole_run", "Where the run's time went"),)
_STEP_BARS = (
    ("cpu_steps", "Where the steps' time went"),
    ("breakdown", "Where the steps' time went"),
    ("host_waits", "What the host did"),
    ("kernels", "What the device did"),
)
"""Sections with a bar that shows where the time went, the most telling first, and what the bar is called alone."""

_SAID_BY_THE_INPUT = frozenset({"TV101", "TV102"})
_INPUTS = frozenset({"input", "possible_input"})
_COMPUTING = ("cpu_steps", "kernels", "host_time", "operators", "framework_ops", "totals", "totals:1")
_INPUT_TABLES = ("input_pipeline", "host_time", "input_pipeline:1", "os_calls", "host_waits")
_LAUNCHES = ("launch", "kernels", "cuda_api")
_COPIES = ("copies", "cuda_api", "host_waits")
_HOST_CALLS = ("host_waits", "cuda_api", "os_calls")
_OTHER_THREADS = "host_time:Other threads"
_RUN_TABLES = ("whole_run:1", "host_time", "host_waits")
_RANKS = ("ranks", "communication", "host_collectives", "host_time")
_BEHIND_CAUSE: dict[str, tuple[str, ...]] = {
    "healthy": _COMPUTING,
    "input": _INPUT_TABLES,
    "possible_input": ("host_time", "host_waits", "os_calls", "input_pipeline"),
    "communication": ("communication", "ranks", "communication:1"),
    "host_collective": ("host_collectives", "ranks", "host_time"),
    "copy_d2h": _COPIES,
    "copy_h2d": _COPIES,
    "other_device": _COPIES,
    "blocking_copy": ("host_waits", "copies", "cuda_api"),
    "parameter_transfer": _COPIES,
    "synchronisation": _HOST_CALLS,
    "device_wait": ("host_waits", "framework_ops", "operators"),
    "allocation": ("cuda_api", "memory", "host_waits"),
    "stream": ("cuda_api", "host_waits"),
    "first_launch": ("host_waits", "cuda_api"),
    "profiler": ("host_waits", "cpu_steps"),
    "kernel_launch": _LAUNCHES,
    "launch_queue": _LAUNCHES,
    "compilation": ("compilation", "host_waits", "host_time"),
    "os_call": ("os_calls", "host_time", "host_waits"),
    "waiting": ("host_time", _OTHER_THREADS, "host_waits"),
    "host": ("host_time", "host_waits", "operators"),
    "unexplained": ("host_time", "host_waits", "idle_gaps"),
    "devices_in_turn": ("device_use", "idle_gaps"),
    **dict.fromkeys(("lock", "gil", "sleep"), ("host_time", _OTHER_THREADS, "host_waits")),
    **dict.fromkeys(("imports", "preparation", "validation", "between", "after", "shutdown"), _RUN_TABLES),
}
"""Sections whose tables are behind a cause, the most telling first; ``name:1`` is the second table of a section, and
``name:Other`` the first whose title begins so."""
_BEHIND_CODE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("TV203", _HOST_CALLS),
    ("TV204", ("kernels", "launch")),
    ("TV206", ("host_waits", "copies", "cuda_api")),
    ("TV301", ("cuda_api", "memory", "host_waits")),
    ("TV401", ("compilation", "host_waits", "host_time")),
    ("TV402", ("compilation", "host_waits", "host_time")),
    ("TV405", ("precision", "kernels")),
    ("TV406", ("launch_contention", "launch", "operators")),
    ("TV407", _LAUNCHES),
    ("TV408", ("gpu_efficiency:1", "kernels")),
    ("TV202", _LAUNCHES),
    ("TV1", _INPUT_TABLES),
    ("TV2", ("host_waits", "host_time", "cuda_api")),
    ("TV3", _COPIES),
    ("TV4", ("kernels", "operators", "framework_ops", "compilation")),
    ("TV504", ("communication", "communication:1", "ranks")),
    ("TV505", _COPIES),
    ("TV506", ("host_collectives", "ranks", "host_time")),
    ("TV5", _RANKS),
    ("TV60", ("host", "cpu_steps", "host_time")),
    ("TV610", ("host_time", "os_calls", "host_waits")),
    ("TV612", ("host_time", _OTHER_THREADS, "host_waits")),
    ("TV613", ("host_time", _OTHER_THREADS, "host_waits")),
    ("TV617", ("cpu_steps", "host_time", "operators")),
    ("TV6", ("host_time", "host_waits", "cpu_steps")),
    ("TV7", _RUN_TABLES),
)
"""The same for findings, by the first of these that their code begins with."""
_SLOW_WORKERS = "TV109"
"""The finding that other processes prepare the input: what they do is behind it."""
_OF_THE_RUN, _OUTSIDE = "TV7", "whole_run:1"
"""Findings on the run as a whole, and the table of where its time outside of steps went."""
_ELSEWHERE = ("host_time", "host_waits", "cpu_steps", "kernels", "operators", "framework_ops", "cuda_api", "os_calls")
"""Where to look for any other cause, and when nothing of that was recorded."""

_STEADY = "steady step time"
_ABSENT = {
    "kernels": "device work",
    "memcpy": "copies",
    "cuda_api": "CUDA calls",
    "host_ops": "operators",
    "memory_events": "memory",
    "nvtx": "ranges of the program",
    "os_calls": "calls of the operating system",
    "samples": "resources of the machine",
    "stacks": "Python stacks",
    "phases": "phases of the run",
    "steps": "steps",
}
"""What is not to be seen where a table is missing."""
_OF_DEVICES = frozenset({"cuda_api", "memcpy", "device_ops"})
"""Tables that say nothing more where no device, or one that is no GPU, was captured."""
_ABOUT_THE_REPORT = frozenset({"window", "selection"})
"""Codes of notes on which part of the capture the report is about."""
_MOST_NAMES = 8
_AS_LARGE = 0.9
"""A finding with this part of the time of the first is as large: it may be about the same time."""
_WORTH_A_TABLE = 0.05
"""Causes of idle time of which none has this share are not worth a table."""
_WORTH_A_PART = 0.01
"""Parts of a bar below this share are one, where there are several of them."""
_LONGEST_FACT = 60
_LONGEST_NAME = 200
_CODE = re.compile(r"TV\d+")
_TITLE_END = re.compile(r"[:,] | \(")
"""Where the title of a table begins to explain itself."""
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")


def first_screen(report: Report, detail: Detail = DETAILS[0]) -> FirstScreen:
    """The first screen of ``report`` with as much as ``detail`` says."""
    lead = _lead(report)
    shown = _findings_that_matter(report, lead)[: detail.findings]
    gates = next((section for section in report.sections if section.slug == GATES), None)
    notes = _notes(report, detail)
    bars = tuple(_folded(bars, detail.parts) for bars in _bars(report))
    return FirstScreen(
        run=tuple(_short(fact, min(detail.characters, _LONGEST_NAME)) for fact in report.run),
        verdict=replace(report.verdict, sentence=_sentences(report.verdict.sentence, 2 * detail.characters)),
        bars=bars,
        findings=tuple(_compact(shown, report.verdict, lead, bars, detail)),
        others=_others(report, shown),
        tables=tuple(_tables(report, lead or next(iter(shown), None)))[: detail.tables],
        rows=detail.rows,
        gates=gates,
        notes=notes,
        unseen=_unseen(report),
        more=_more(report, shown, len(report.notes) - len(notes)),
    )


def spoken(report: Report) -> tuple[str, ...]:
    """The same in a few lines, for the end of a recording: the verdict, and what each finding adds to it."""
    screen = first_screen(report)
    serious = (finding for finding in screen.findings if finding.severity is not Severity.INFO)
    added = (f"{f.code} {f.slug}: {f.message or next(iter(f.advice), '')}" for f in serious)
    return screen.verdict.sentence, *added


def _lead(report: Report) -> Finding | None:
    """The finding that the verdict is about, where it is about one."""
    cause = report.verdict.cause
    codes = {candidate.evidence for candidate in report.verdict.candidates if candidate.leads}
    about_input = _SAID_BY_THE_INPUT if cause in _INPUTS else frozenset()
    for finding in by_time_at_stake(report.findings):
        if finding.slug == cause or finding.code in codes | about_input:
            return finding
    return None


def _findings_that_matter(report: Report, lead: Finding | None) -> list[Finding]:
    """What the verdict is about, then what is worth a change, then one that explains more of the first."""
    ordered = by_time_at_stake(report.findings)
    serious = [finding for finding in ordered if finding is not lead and finding.severity is not Severity.INFO]
    chosen = [lead, *serious] if lead else serious
    hints = [finding for finding in ordered if finding not in chosen]
    if chosen:
        hints = [finding for finding in hints if finding.code[:3] == chosen[0].code[:3]]
    return [*chosen, *hints[:1]]


def _compact(
    findings: Iterable[Finding], verdict: Verdict, lead: Finding | None, bars: tuple[Bars, ...], detail: Detail
) -> Iterator[Finding]:
    """The findings without what is said beside them, with their first new advice."""
    given: set[str] = set()
    beside = " ".join((verdict.sentence, *(part.whole for part in bars)))
    for finding in findings:
        is_said = _is_said(finding, verdict) or (finding is lead and finding.code in _SAID_BY_THE_INPUT)
        message = "" if is_said else _sentences(finding.message, detail.characters)
        said = f"{beside} {time_at_stake(finding)} {message}"
        facts = () if finding.severity is Severity.INFO else (_short(fact) for fact in finding.evidence)
        evidence = [fact for fact in facts if not _states(said, format_value(fact.value, fact.unit))]
        advice = next((step for step in finding.advice if step not in given), "")
        given.add(advice)
        steps = (_sentences(advice, detail.characters),) if advice else ()
        yield replace(finding, message=message, evidence=tuple(evidence[: detail.facts]), advice=steps)


def _states(text: str, value: str) -> bool:
    """Whether a value stands in a text: ``2`` is not in ``2.3×``."""
    return re.search(rf"(?<![\w.,]){re.escape(value)}(?![.,]?\w)", text) is not None


def _is_said(finding: Finding, verdict: Verdict) -> bool:
    """Whether the verdict holds the message; after a colon its first letter is small."""
    return finding.message[1:].rstrip(".") in verdict.sentence


def _short(fact: Fact, most: int = _LONGEST_FACT) -> Fact:
    value = _clipped(fact.value, most) if isinstance(fact.value, str) else fact.value
    return replace(fact, label=_clipped(fact.label, most), value=value)


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS


def _sentences(text: str, most: int) -> str:
    """The first sentences of ``text`` that have at most ``most`` characters; of a longer one, its start."""
    if len(text) <= most:
        return text
    first, *others = _SENTENCE_END.split(text)
    if len(first) > most:
        return _clipped(first, most)
    for sentence in others:
        if len(first) + 1 + len(sentence) > most:
            break
        first = f"{first} {sentence}"
    return first


def _bars(report: Report) -> Iterator[Bars]:
    for kinds in (_RUN_BARS, _STEP_BARS):
        yield from _first_bars(report, kinds)


def _first_bars(report: Report, kinds: tuple[tuple[str, str], ...]) -> tuple[Bars, ...]:
    for slug, title in kinds:
        for block in report.blocks(slug):
            if isinstance(block, Bars) and any(bar.share > 0 for bar in block.bars):
                whole = _in_numbers(report, block.whole)
                named = title if "step" in whole else title.replace("steps' ", "")
                short = _clipped(whole.removeprefix("time of "), _LONGEST_FACT)
                return (replace(block, title=named, whole=short),)
    return ()


def _in_numbers(report: Report, whole: str) -> str:
    """What a bar is a share of; of steady steps, with how many they are and how long they took."""
    counted_steps = (block.whole for block in report.blocks("breakdown") if isinstance(block, Bars))
    return next(counted_steps, whole) if whole == _STEADY else whole


def _folded(bars: Bars, most: int) -> Bars:
    """The bars without parts of nothing, the small ones as one part, ``most`` parts in all."""
    parts = [bar for bar in bars.bars if bar.share > 0]
    ordered = sorted(parts, key=lambda bar: -bar.share)
    large = [bar for bar in ordered[: most - 1] if bar.share >= _WORTH_A_PART]
    small = [bar for bar in parts if bar not in large]
    if len(small) < 2:
        return replace(bars, bars=tuple(parts))
    kept = [bar for bar in parts if bar in large]
    values = [bar.value for bar in small if isinstance(bar.value, int | float)]
    rest = Bar("other", f"other ({len(small)})", sum(values), math.fsum(bar.share for bar in small))
    return replace(bars, bars=(*kept, rest))


def _tables(report: Report, first: Finding | None) -> Iterator[Section]:
    """The tables behind what takes the time, each in a section of its own; without any, one that is always of use."""
    places = list(_places(report.verdict.cause, first))
    serious = [finding for finding in by_time_at_stake(report.findings) if finding.severity is not Severity.INFO]
    if serious and serious[0].code.startswith(_OF_THE_RUN):
        places = [_OUTSIDE, *places]
    if any(finding.code == _SLOW_WORKERS for finding in report.findings):
        places = [_OTHER_THREADS if place == "host_time" else place for place in places]
    as_large = next((f for f in serious if first and f is not first and f.cost_ns >= _AS_LARGE * first.cost_ns), None)
    if as_large and not as_large.code.startswith(_OF_THE_RUN):
        places[1:1] = _places("", as_large)[:1]
    behind = [section for place in dict.fromkeys(places) for section in _table(report, place)]
    yield from behind or [section for place in _ELSEWHERE for section in _table(report, place)]


def _places(cause: str, first: Finding | None) -> tuple[str, ...]:
    """Where the tables are behind the cause that the verdict names, else behind the first finding."""
    code = first.code if first and first.severity is not Severity.INFO else ""
    others = _ELSEWHERE if cause else _COMPUTING
    by_code = next((places for start, places in _BEHIND_CODE if code.startswith(start)), others)
    return _BEHIND_CAUSE.get(cause, by_code)


def _table(report: Report, place: str) -> Iterator[Section]:
    slug, _, which = place.partition(":")
    for section in report.sections:
        if section.slug == slug:
            grids = [block for block in blocks_for_people(section.blocks) if isinstance(block, Grid) and block.rows]
            named = [grid for grid in grids if grid.title.startswith(which)]
            for grid in (grids[int(which) :] if which.isdecimal() else named)[:1]:
                if slug == "host_waits" and _largest_share(grid) < _WORTH_A_TABLE:
                    continue
                table = _TITLE_END.split(grid.title, maxsplit=1)[0]
                title = f"{section.title} · {table}" if table else section.title
                rows = _largest_first(grid) if place == _OUTSIDE else grid.rows
                yield Section(slug, title, (replace(grid, title="", rows=rows, complete=False),))


def _largest_share(grid: Grid) -> float:
    shares = [index for index, column in enumerate(grid.columns) if is_share(column)]
    return max((number_of(row[index]) for row in grid.rows for index in shares), default=1.0)


def _largest_first(grid: Grid) -> tuple[Row, ...]:
    """The rows of a table that is in the order of time, the longest first."""
    times = [index for index, column in enumerate(grid.columns) if column.unit == "ns"]
    return tuple(sorted(grid.rows, key=lambda row: -number_of(row[times[0]]))) if times else grid.rows


def _others(report: Report, shown: list[Finding]) -> str:
    """Names of the findings that are not shown."""
    names = [finding.slug for finding in by_time_at_stake(report.findings) if finding not in shown]
    return f"Also: {_listed(names)} (--section {FINDINGS})." if names else ""


def _notes(report: Report, detail: Detail) -> tuple[Note, ...]:
    """What the report is about, where that is a part of the capture, and what may mislead."""
    ordered = sorted(report.notes, key=lambda note: (note.code not in _ABOUT_THE_REPORT, -note.severity.rank))
    serious = [note for note in ordered if note.severity is not Severity.INFO or note.code in _ABOUT_THE_REPORT]
    return tuple(replace(note, message=_sentences(note.message, detail.characters)) for note in serious[: detail.notes])


def _unseen(report: Report) -> str:
    """What the capture has nothing of: what its missing tables would hold, and steps where none were found."""
    missing = [table for skip in report.skipped for table in skip.tables or ("steps",) * (skip.slug == "steps")]
    is_no_gpu = "kernels" in missing or ("memcpy" in missing and any(report.blocks("device_programs")))
    beside = _OF_DEVICES if is_no_gpu else {"device_ops"}
    named = (_ABSENT.get(table, table.replace("_", " ")) for table in missing if table not in beside)
    absent = list(dict.fromkeys(named))
    words = absence(report)
    return f"{words[0].upper()}{words[1:]}: {_listed(absent)}." if absent else ""


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _more(report: Report, shown: list[Finding], hidden: int) -> str:
    """How to see what is not on the screen."""
    sections = f"{counted(len(report.sections), 'section')}"
    ways = [f"all {sections}: --all" if len(report.sections) > 1 else "everything: --all", "one: --section NAME"]
    ways += [f"notes: --section {NOTES}"] if hidden else []
    ways += [f"traceviz explain {shown[0].code}"] if shown else []
    return " · ".join(ways)
