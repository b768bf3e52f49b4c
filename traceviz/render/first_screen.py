"""The first screen of a report: the verdict, the distribution of time, findings with advice, and further commands.

The selection is a value, the same for every medium; renderers only draw it. A medium with little room requests less
:class:`Detail`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

from traceviz.core.units import UNITS, Unit, Value, counted, format_ratio, format_value
from traceviz.render.options import FINDINGS, GATES, NOTES
from traceviz.render.rows import DEVICE_WORK, REST, absence, by_time_at_stake, time_at_stake
from traceviz.render.supporting_tables import tables_behind
from traceviz.render.text import ELLIPSIS
from traceviz.render.verdict_text import (
    FirstLines,
    advice_from_evidence,
    describe_absence_of_findings,
    first_lines,
)
from traceviz.report import (
    MEASURES,
    STATED,
    STEADY_STEP_TIME,
    Bar,
    Bars,
    Claim,
    Fact,
    Finding,
    Note,
    Report,
    Section,
    Severity,
    Verdict,
)
from traceviz.report.findings.registry import find_record
from traceviz.report.start import find_start
from traceviz.report.verdicts import Cause


@dataclass(frozen=True, slots=True)
class Detail:
    """Limits of the content of a first screen.

    Args:
        findings: Findings with their evidence and first advice; others are only named.
        rows: Rows of a table.
        tables: Tables that support the largest cause.
        parts: Parts of a bar; smaller ones are combined.
        notes: Notes above the level of information.
        facts: Facts of the evidence of a finding.
        characters: Length of one text, half of that of the verdict; texts end after a whole sentence if possible.
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
"""Limits from the most to the least detail; a medium uses the first that fits."""


def most_lines(width: int) -> int:
    """Return the number of lines that a first screen may have on a page of ``width`` cells."""
    return 45 if width >= 100 else 4_800 // width


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """The parts of the screen, in this order.

    Args:
        run: Facts about the run.
        lines: Headline, consequence and caveats.
        bars: Distribution of the judged time, the one that the headline is about first.
        findings: The most important ones, with their first advice and the evidence that the verdict does not state.
        others: The names of the other findings, as text; empty if there are none. Without any finding, what was looked
            for.
        tables: Sections of one table each: support for the largest cause.
        rows: Rows shown of each table.
        gates: The results of gates, if any were set.
        notes: Warnings about possible misreadings.
        unseen: Data that was not measured, as text.
        more: How to see the rest.
    """

    run: tuple[Fact, ...]
    lines: FirstLines
    bars: tuple[Bars, ...]
    findings: tuple[Finding, ...]
    others: str
    tables: tuple[Section, ...]
    rows: int
    gates: Section | None
    notes: tuple[Note, ...]
    unseen: str
    more: str


_OF_VERDICT = "verdict"
"""Stands for the parts of the verdict, which no section has."""
_RUN_BARS = (("whole_run", "Where the run's time went", "Where the run's time went"),)
_STEP_BARS = (
    ("cpu_steps", "Where the steps' time went", "Where the time went"),
    (_OF_VERDICT, "Where the steps' time went", "Where the time went"),
    ("breakdown", "Where the steps' time went", "Where the time went"),
    ("host_time", "Where the host's time went", "Where the host's time went"),
    ("host_waits", "What the host did", "What the host did"),
    ("kernels", "What the device did", "What the device did"),
)
"""Sections with a bar of the distribution of time, the most informative first: slug, title for the bar alone if it
covers steps, and any other title."""

_INPUTS = frozenset({Cause.INPUT, Cause.POSSIBLE_INPUT})
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
"""Names of the data that a missing table would hold."""
_OF_DEVICES = frozenset({"cuda_api", "memcpy", "device_ops"})
"""Tables that add nothing if no device, or one that is not a GPU, was captured."""
_ABOUT_THE_REPORT = frozenset({"window", "selection", "run-chosen", "hooks-lost", "not-injected"})
"""Codes of notes about the part of the run that the report covers."""
FIGURES = "figures"
"""Fact with the figures of the whole run that the header shows."""
_FIGURES = {
    "epoch_ns": "epoch {}",
    "samples_per_second": "{} samples/s",
    "latency_p50_ns": "latency {}",
    "energy_per_sample_j": "{} a sample",
}
"""Keys of these figures, with their texts."""
QUALITY = "quality"
"""Section with figures of quality."""
_MOST_NAMES = 8
_WORTH_A_PART = 0.01
"""Parts of a bar below this share are combined if there are several."""
_LONGEST_FACT = 60
_LONGEST_NAME = 200
_PLACE = re.compile(r"(?P<line>\S+:\d+) (?P<function>\S+)")
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")


def first_screen(report: Report, detail: Detail = DETAILS[0]) -> FirstScreen:
    """Create the first screen of ``report`` within the limits of ``detail``."""
    lead = leading_finding(report)
    # The verdict's finding comes first, then the serious ones, then one hint of the same kind as the first.
    ordered = by_time_at_stake(report.findings)
    serious = [finding for finding in ordered if finding is not lead and finding.severity is not Severity.INFO]
    chosen = [lead, *serious] if lead else serious
    hints = [finding for finding in ordered if finding not in chosen]
    if chosen:
        hints = [finding for finding in hints if finding.code[:3] == chosen[0].code[:3]]
    shown = [*chosen, *hints[:1]][: detail.findings]
    others = [finding.slug for finding in ordered if finding not in shown]
    gates = next((section for section in report.sections if section.slug == GATES), None)
    # Notes about a partial report come before the warnings.
    by_weight = sorted(report.notes, key=lambda note: (note.code not in _ABOUT_THE_REPORT, -note.severity.rank))
    warnings = [note for note in by_weight if note.severity is not Severity.INFO or note.code in _ABOUT_THE_REPORT]
    notes = tuple(
        replace(note, message=_sentences(note.message, detail.characters)) for note in warnings[: detail.notes]
    )
    bars = tuple(_folded(bars, detail.parts) for bars in judged_bars(report))
    return FirstScreen(
        run=tuple(_short(fact, min(detail.characters, _LONGEST_NAME)) for fact in _facts_of_the_run(report)),
        lines=_lines(report.verdict, detail),
        bars=bars,
        findings=tuple(_compact(shown, report.verdict, lead, bars, detail)),
        others=f"Also: {_listed(others)} (--section {FINDINGS})." if others else describe_absence_of_findings(report),
        tables=tables_behind(report, lead or next(iter(shown), None))[: detail.tables],
        rows=detail.rows,
        gates=gates,
        notes=notes,
        unseen=_unseen(report),
        more=_more(report, shown, len(report.notes) - len(notes)),
    )


def spoken(report: Report) -> tuple[str, ...]:
    """Summarise the screen in a few lines, for the end of a recording: the headline, then each serious finding."""
    screen = first_screen(report)
    serious = (finding for finding in screen.findings if finding.severity is not Severity.INFO)
    added = (f"{f.code} {f.slug}: {f.message or next(iter(f.advice), '')}" for f in serious)
    return *filter(None, (screen.lines.headline, screen.lines.consequence)), *added


def _facts_of_the_run(report: Report) -> Iterator[Fact]:
    """Return facts about the run; if the run is longer than the capture, the captured time is marked as profiled.

    Figures of the whole run that are not in the bars or the verdict follow, and the most informative figure of model
    quality: the first that has a direction.
    """
    has_run = any(_bars_of(report, _RUN_BARS))
    for fact in report.run:
        if has_run and fact.key == "span_ns" and fact.value is not None:
            yield replace(fact, value=f"{format_value(fact.value, fact.unit)} profiled", unit="text")
        else:
            yield fact
    shown: dict[Value, str] = {}
    for grid in (grid for grid in report.grids(MEASURES) if grid.title == MEASURES):
        names = [column.name for column in grid.columns]
        for row in (dict(zip(names, values, strict=True)) for values in grid.rows):
            unit = next((unit for unit in UNITS if unit == row.get("unit")), "number")
            shown[row.get("key")] = format_value(row.get("value"), cast("Unit", unit)).removesuffix("/s")
    said = [words.format(shown[key]) for key, words in _FIGURES.items() if key in shown]
    if said:
        yield Fact(FIGURES, "figures of the run", ", ".join(said))
    for grid in (grid for grid in report.grids(QUALITY) if grid.title == STATED):
        names = [column.name for column in grid.columns]
        row = dict(zip(names, grid.rows[0], strict=True)) if grid.rows else {}
        if row.get("better") and row.get("last") is not None:
            yield Fact(QUALITY, "last figure of quality", f"{row.get('label')} {format_value(row['last'], 'number')}")


def leading_finding(report: Report) -> Finding | None:
    """Return the finding that the verdict is about, if any."""
    cause = report.verdict.cause
    codes = {candidate.evidence for candidate in report.verdict.candidates if candidate.leads}
    ordered = by_time_at_stake(report.findings)
    for finding in ordered:
        if finding.slug == cause or finding.code in codes or (cause in _INPUTS and _is_of_input(finding)):
            return finding
    return next((finding for finding in ordered if _is_same_claim(finding, report.verdict)), None)


def _is_same_claim(finding: Finding, verdict: Verdict) -> bool:
    """Return whether a finding has the share of the part that leads the verdict, with the same base."""
    leads = (candidate for candidate in verdict.candidates if candidate.leads)
    share = format_ratio(finding.share) if finding.share is not None else ""
    return any(lead.share_of == finding.share_of and format_ratio(lead.share) == share for lead in leads)


def _is_of_input(finding: Finding) -> bool:
    record = find_record(finding.code)
    return record is not None and record.is_of_input


def _compact(
    findings: Iterable[Finding], verdict: Verdict, lead: Finding | None, bars: tuple[Bars, ...], detail: Detail
) -> Iterator[Finding]:
    """Remove text that the verdict or the bars already state, and keep only the first new advice."""
    given: set[str] = set()
    said_first = f"{verdict.headline} {verdict.consequence}" if verdict.headline else verdict.sentence
    beside = " ".join((said_first, *(part.whole for part in bars)))
    for finding in findings:
        # The verdict may contain the message, with a lower case letter at its start. JSON reports do not say so.
        is_stated = finding.message[1:].rstrip(".") in said_first or (finding is lead and _is_of_input(finding))
        message = "" if is_stated else _sentences(finding.message, detail.characters)
        said = f"{beside} {time_at_stake(finding)} {message}"
        facts = () if finding.severity is Severity.INFO else (_short(fact) for fact in finding.evidence)
        evidence = [fact for fact in facts if not _states(said, format_value(fact.value, fact.unit))]
        place, step = next(((n, step) for n, step in enumerate(finding.advice) if step not in given), (0, ""))
        given.add(step)
        starts = not place and step and (finding is not lead or find_start(finding) not in said_first)
        advice = advice_from_evidence(finding)[0] if starts else step
        steps = (_sentences(advice, detail.characters),) if advice else ()
        share = None if finding is lead and verdict.headline else finding.share  # the headline states it
        shown = tuple(evidence[: detail.facts])
        yield replace(finding, message=message, evidence=shown, advice=steps, share=share)


def _states(text: str, value: str) -> bool:
    """Return whether a text contains a value: ``2`` is not in ``2.3×``; places have two notations."""
    if place := _PLACE.fullmatch(value):
        return f"{place['function']} ({place['line']})" in text
    return re.search(rf"(?<![\w.,]){re.escape(value)}(?![.,]?\w)", text) is not None


def _short(fact: Fact, most: int = _LONGEST_FACT) -> Fact:
    value = _clipped(fact.value, most) if isinstance(fact.value, str) else fact.value
    return replace(fact, label=_clipped(fact.label, most), value=value)


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS


def _sentences(text: str, most: int) -> str:
    """Return as many sentences of ``text`` as fit ``most`` characters; cut the first one if it is longer."""
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


def _lines(verdict: Verdict, detail: Detail) -> FirstLines:
    lines = first_lines(verdict, detail.characters)
    return lines if verdict.headline else replace(lines, headline=_sentences(lines.headline, 2 * detail.characters))


def judged_bars(report: Report) -> Iterator[Bars]:
    """Return the bars of the capture, the run and the steps, as far as they are known.

    The one whose base is that of the headline comes first.
    """
    lead = next((candidate for candidate in report.verdict.candidates if candidate.leads), None)
    kinds = (_RUN_BARS, _STEP_BARS) if lead is not None and lead.share_of == _RUN else (_STEP_BARS, _RUN_BARS)
    led = format_ratio(lead.share) if lead is not None else ""
    captured = report.verdict.capture_parts
    if captured:
        yield Bars("Where the captured time went", captured[0].share_of, "ns", _as_bars(captured))
    for kind in kinds:
        found = list(_bars_of(report, kind))
        same = [bars for bars in found if any(format_ratio(bar.share) == led for bar in bars.bars)]
        yield from (same or found)[:1]  # the most informative one, but with the number of the headline


_RUN = "run"
"""Base of the shares of a whole run's parts."""


def _bars_of(report: Report, kinds: tuple[tuple[str, str, str], ...]) -> Iterator[Bars]:
    """Return the bars of the judged time that the report has, the most informative first."""
    for slug, title_of_steps, title in kinds:
        for block in _parts(report.verdict) if slug == _OF_VERDICT else report.blocks(slug):
            if isinstance(block, Bars) and any(bar.share > 0 for bar in block.bars):
                whole = block.whole
                if whole == STEADY_STEP_TIME:  # the bar of the breakdown also has their number and time
                    whole = next((bars.whole for bars in report.blocks("breakdown") if isinstance(bars, Bars)), whole)
                short = _clipped(whole.removeprefix("time of "), _LONGEST_FACT)
                yield replace(block, title=title_of_steps if "step" in whole else title, whole=short)


def _parts(verdict: Verdict) -> tuple[Bars, ...]:
    """Return the parts of the verdict as one bar: the work of devices, then their idle time by cause."""
    parts = sorted(verdict.parts, key=lambda part: part.key not in DEVICE_WORK)
    return (Bars("Parts", parts[0].share_of, "ns", _as_bars(parts)),) if parts else ()


def _as_bars(parts: Iterable[Claim]) -> tuple[Bar, ...]:
    return tuple(Bar(part.key, part.label, part.time_ns, part.share) for part in parts)


def _folded(bars: Bars, most: int) -> Bars:
    """Drop empty parts and combine the small ones, leaving at most ``most`` parts."""
    parts = [bar for bar in bars.bars if bar.share > 0]
    ordered = sorted(parts, key=lambda bar: -bar.share)
    large = [bar for bar in ordered[: most - 1] if bar.share >= _WORTH_A_PART]
    small = [bar for bar in parts if bar not in large]
    if len(small) < 2:
        return replace(bars, bars=tuple(parts))
    kept = [bar for bar in parts if bar in large]
    values = [bar.value for bar in small if isinstance(bar.value, int | float)]
    rest = Bar(REST, f"other ({len(small)})", sum(values), math.fsum(bar.share for bar in small))
    return replace(bars, bars=(*kept, rest))


def _unseen(report: Report) -> str:
    """List the data missing from the capture: content of missing tables, and steps if none were found."""
    missing = [table for skip in report.skipped for table in skip.tables or ("steps",) * (skip.slug == "steps")]
    is_no_gpu = "kernels" in missing or ("memcpy" in missing and any(report.blocks("device_programs")))
    beside = _OF_DEVICES if is_no_gpu else {"device_ops"}
    named = (_ABSENT.get(table, table.replace("_", " ")) for table in missing if table not in beside)
    absent = list(dict.fromkeys(named))
    return f"{absence(report).capitalize()}: {_listed(absent)}." if absent else ""


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _more(report: Report, shown: list[Finding], hidden: int) -> str:
    """List the commands that show the rest."""
    sections = f"{counted(len(report.sections), 'section')}"
    ways = [f"all {sections}: --all" if len(report.sections) > 1 else "everything: --all", "one: --section NAME"]
    ways += [f"notes: --section {NOTES}"] if hidden else []
    ways += [f"traceviz explain {shown[0].code}"] if shown else []
    return " · ".join(ways)
