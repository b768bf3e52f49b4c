"""Parts of the time of the whole run. Steps are often the smaller part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.run_parts.parts import LABELS, STARTUP, STEPS, RunParts, run_parts
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.report import Bar, Bars, Block, Column, Fact, Facts, Finding, Grid, Prose, Section, Skipped

OUTSIDE = ("validation", "saving", "between", "after")
"""Parts of a run outside of steps, after its first step."""


@dataclass(frozen=True, slots=True)
class WholeRunAnalysis(Analysis[RunParts]):
    """Recorded time of the process that trains, in exclusive parts.

    Args:
        least_steps: If steps take a smaller share of the run after its first step, the time outside of them is a
            finding.
        least_share: Share of the run from which on validation, saving and time between steps are findings.
        hint_share: Up to this share of the run, validation is for information, since it may be intended. All time
            outside of steps together is no finding up to this share.
        least_startup: Share of a long run from which on its start-up is a finding.
        long_run_ns: A run of this length is long,
        most_startup: and one on a quiet machine that spends this share of it and
        long_startup_ns: this time on its start-up. In others, only the start-up without imports counts, for
            information, from that share on, because all short runs import.
    """

    slug = "whole_run"
    title = "The whole run"
    rules = ("TV701", "TV702", "TV703", "TV704", "TV705")

    least_steps: float = 0.5
    least_share: float = 0.05
    hint_share: float = 0.20
    least_startup: float = 0.20
    long_run_ns: int = 120_000_000_000
    most_startup: float = 0.5
    long_startup_ns: int = 30_000_000_000

    def run(self, trace: TraceView) -> RunParts | Skipped:
        """Divide the run into parts, if hooks in the program or samples of its stacks saw all of it."""
        parts = run_parts(trace)
        return self.skipped("only a part of the run was recorded") if parts is None else parts

    def judge(self, result: RunParts) -> tuple[Finding, ...]:
        """Return findings on parts outside of steps that take much of the run."""
        judged = result.judged
        if not judged.steps or not judged.run_ns:
            return ()
        return tuple(self._found(judged))

    def _found(self, run: RunParts) -> Iterator[Finding]:
        outside = run.time_ns(*OUTSIDE)
        stepping = run.time_ns(*STEPS)
        if stepping < self.least_steps * (stepping + outside) and outside >= self.hint_share * run.run_ns:
            yield self._finding("TV701", run, OUTSIDE, f"Steps are {format_ratio(run.share(*STEPS))} of {run.words()}")
        if run.share("validation") >= self.least_share:
            is_hint = run.share("validation") < self.hint_share
            yield self._finding("TV702", run, ("validation",), "The model is evaluated", is_hint=is_hint)
        in_loop = run.times["saving"].intersect(run.loop).total if "saving" in run.times else 0
        if in_loop >= self.least_share * run.run_ns:
            yield self._finding("TV703", run, ("saving",), "The loop waits for what it saves", cost_ns=in_loop)
        is_most = run.share(*STARTUP) >= self.most_startup and run.time_ns(*STARTUP) >= self.long_startup_ns
        # On a busy machine, a short run imports for longer than it would alone
        is_long = run.run_ns >= self.long_run_ns or (is_most and not run.is_slowed)
        counted = STARTUP if is_long else ("preparation",) if where_of(run, ("preparation",)) else ()
        if run.share(*counted) >= (self.least_startup if is_long else self.most_startup):
            # Imports are nearly the same in each run, and take longer on a busy machine
            imports = run.time_ns("imports") >= MOSTLY * run.time_ns(*STARTUP)
            is_hint = not is_long or (imports and (not is_most or run.run_ns < self.long_run_ns))
            yield self._finding("TV704", run, STARTUP, "The first step waits for start-up", is_hint=is_hint)
        if run.share("between") >= self.least_share:
            yield self._finding("TV705", run, ("between",), "The loop does neither steps, validation nor saving")

    @staticmethod
    def _finding(
        code: str,
        run: RunParts,
        parts: tuple[str, ...],
        what: str,
        *,
        cost_ns: int | None = None,
        is_hint: bool = False,
    ) -> Finding:
        cost = run.time_ns(*parts) if cost_ns is None else cost_ns
        where = where_of(run, parts)
        mostly = _both_halves(run) if parts == STARTUP else ""
        mostly = mostly or (f", mostly {where}" if where else "")
        share = format_ratio(cost / run.run_ns)
        message = f"{what}: {share} of {run.words('the run')}, {format_ns(cost)}{mostly}."
        if code == "TV701":
            part = largest(run, OUTSIDE)
            message = f"{what}; {format_ratio(run.share(part))} is {said(run, part)}."
        evidence = (
            Fact("time_ns", "time", cost, "ns"),
            Fact("run_ns", "the run", run.run_ns, "ns"),
            Fact("steps_share", "steps", run.share(*STEPS), "ratio"),
            *((Fact("where", "where", where),) if where else ()),
        )
        return finding(code, message, evidence, cost, run.run_ns, "run", is_hint=is_hint)

    def describe(self, result: RunParts) -> Section:
        """Describe the run with a stacked bar, the table behind it, and the place of each part in the program."""
        total = result.run_ns
        shown = [(key, label) for key, label in LABELS.items() if result.time_ns(key)]
        bars = tuple(Bar(key, label, result.time_ns(key), result.share(key)) for key, label in shown)
        facts = (
            Fact("run_ns", "the run", total, "ns"),
            Fact("steps", "steps", result.steps, "count"),
            Fact("steps_share", "of the run in steps", result.share(*STEPS), "ratio"),
            Fact("startup_ns", "start-up", result.time_ns(*STARTUP), "ns"),
            Fact("recording_ns", "starting and saving the recording", result.recording_ns, "ns"),
            Fact("processes", "processes that train", result.processes, "count"),
        )
        of = f" of the first of {result.processes} processes" if result.processes > 1 else ""
        stepping = f"with {counted(result.steps, 'step')}" if result.steps else "without steps"
        columns = (
            Column("part", "Part", "text", 9),
            Column("label", "Part", "text", 0),
            Column("time_ns", "Time", "ns", 0),
            Column("share_of_run", "Of the run", "ratio", 0, bar=True),
            Column("where", "Mostly in", "text", 1),
        )
        rows = tuple(
            (key, label, result.time_ns(key), result.share(key), where_of(result, (key,))) for key, label in shown
        )
        blocks: list[Block] = [
            Facts(facts, audience="machine"),
            Bars("The run", f"{format_ns(total)}{of} {stepping}", "ns", bars),
            Grid(columns, rows, complete=True),
        ]
        if places := _places(result):
            blocks.append(places)
        if result.recording_ns:
            blocks.append(
                Prose(f"Left out: {format_ns(result.recording_ns)} in which the recording started, stopped and saved.")
            )
        return Section(self.slug, self.title, tuple(blocks))


def _places(run: RunParts) -> Grid | None:
    columns = (
        Column("part", "Part", "text", 0),
        Column("place", "Place", "text", 0),
        Column("time_ns", "Time", "ns", 0),
        Column("share_of_part", "Of the part", "ratio", 1),
        Column("samples", "Samples", "count", 2),
    )
    rows = tuple(
        (LABELS[key], place.name, place.time_ns, place.time_ns / run.time_ns(key), place.samples)
        for key, places in run.places.items()
        if key not in STEPS
        for place in places
    )
    return Grid(columns, rows, "Where outside of steps") if rows else None


_FAILED = {"failed": "failed", "killed": "was killed"}
"""Outcomes of a run that its headline states."""


def describe_failure(trace: TraceView) -> str:
    """Return the sentence about a program that failed or was killed; empty for others."""
    settings = trace.frame("settings", pl.col("key", "value").cast(pl.String)).drop_nulls()
    run = dict(settings.filter(pl.col("key").str.starts_with("run.")).iter_rows())
    verb = _FAILED.get(run.get("run.ending.outcome") or run.get("run.status", ""), "")
    if not verb:
        return ""
    code = run.get("run.exit.code")
    reason = run.get("run.ending.reason") or (f"exit code {code}" if code else "")
    return f"The program {verb}{f' ({reason})' if reason else ''}."


START_UP = "start-up"
"""Name of the parts before the first step, within a sentence."""
NAMED = frozenset({"validation", "saving"})
"""Parts whose places may stand for the part."""
MOSTLY = 0.5
"""A place with this share of a part is named for it."""
LEAST_HALF = 0.2
"""Imports and data preparation are both named if each has this share of the start-up."""
STANDS_FOR = 0.8
"""A place with this share replaces the name of the part."""


def where_of(run: RunParts, parts: tuple[str, ...]) -> str | None:
    """Return the place that has most of these parts; ``None`` if none has."""
    places = [place for part in parts for place in run.places.get(part, ())]
    places += [run.mostly[part] for part in parts if part in run.mostly]
    enough = [place for place in places if place.time_ns >= MOSTLY * run.time_ns(*parts)]
    return enough[0].name if enough else None


def largest(run: RunParts, parts: Iterable[str]) -> str:
    """Return the key of the largest of these parts; start-up counts as a whole."""
    return max(parts, key=lambda part: run.time_ns(*whole(part)))


def whole(part: str) -> tuple[str, ...]:
    """Return the parts that are reported together with this one."""
    return STARTUP if part in STARTUP else (part,)


def said(run: RunParts, part: str) -> str:
    """Return the name of a part within a sentence: a function that stands for it, else its label and main place."""
    label = START_UP if part in STARTUP else LABELS[part]
    if part in STARTUP and (halves := _both_halves(run)):
        return f"{label}{halves}"
    where = where_of(run, whole(part))
    if where is None:
        return label
    most = max(place.time_ns for key in whole(part) for place in run.places.get(key, ()))
    stands = part in NAMED and most >= STANDS_FOR * run.time_ns(part) and "(" in where
    return where if stands else f"{label}, mostly {where}"


def _both_halves(run: RunParts) -> str:
    """Return imports and the rest of the start-up, if both are large and the place of the rest is known."""
    prepares = where_of(run, ("preparation",))
    least = LEAST_HALF * run.time_ns(*STARTUP)
    if prepares is None or any(run.time_ns(part) < least for part in STARTUP):
        return ""
    imports, rest = (format_ratio(run.share(part)) for part in STARTUP)
    return f" (imports {imports}, {prepares} {rest})"
