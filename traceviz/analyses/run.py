"""Run the analyses over a trace and put their results into one report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from traceviz.analyses.advice import find_needless, fit_advice, inapplicable, say_once
from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.capture.kind import capture_kind
from traceviz.analyses.derived.causes.attribution import attribute_time
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.headline.verdict import verdict
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.registry import Entry, Shared, entries, shared_by
from traceviz.core.process.cores import usable_cores
from traceviz.core.registry import find_fault_of_plugin, is_own, plugin_error, warn_of_plugin
from traceviz.core.units import Unit
from traceviz.report import Block, Fact, Facts, Finding, Grid, Note, Prose, Report, Section, Severity, Skipped
from traceviz.report.findings.registry import record_of
from traceviz.trace.names.cuda_names import api_kind, in_words_of_hip, is_of_hip
from traceviz.trace.names.kernel_names import catalogue
from traceviz.trace.tables import TraceTables
from traceviz.untrusted.errors import foreign_errors_in_words

MAX_WORKERS = 4
"""Most threads for analyses. More would wait for each other, because analyses share most of what they compute."""
LARGE_ROWS = 100_000
"""With fewer rows, most of the time is spent in Python code, which only one thread runs at a time."""


def load_analyses(sections: Collection[str] | None) -> None:
    """Import the modules that :func:`analyze` will need. Another thread may do this while the trace is read."""
    for entry in entries(sections):
        if is_own(entry.home):
            entry.load()
    catalogue()
    api_kind("")  # compiles patterns


def analyze(
    tables: TraceTables, options: AnalysisOptions | None = None, sections: Collection[str] | None = None
) -> Report:
    """Analyse a trace.

    Args:
        tables: The trace.
        options: Options of the user about the program.
        sections: Slugs of the sections to make; ``None`` for all.

    Returns:
        The report: findings sorted by time at stake, sections in their fixed order, and skipped sections with the
            reason.

    Raises:
        UsageError: a section does not exist.
        DamagedTraceError: the trace holds values that cannot be computed with.
        OutOfMemoryError: the analysis needs more memory than there is.
    """
    return analyze_view(view(tables, options), sections)


@foreign_errors_in_words("The trace cannot be analysed.")
def view(tables: TraceTables, options: AnalysisOptions | None = None) -> TraceView:
    """Return a trace as analyses see it, for :func:`analyze_view` and for later code that needs the same intervals.

    Raises:
        DamagedTraceError, OutOfMemoryError: as :func:`analyze`.
    """
    return TraceView(tables, options)


@foreign_errors_in_words("The trace cannot be analysed.")
def analyze_view(trace: TraceView, sections: Collection[str] | None = None) -> Report:
    """Analyse a trace like :func:`analyze`. ``trace`` keeps the results derived from it."""
    tables = trace.tables
    results: dict[str, Any] = {}
    skipped: list[Skipped] = []
    described: list[Section] = []
    findings: list[Finding] = []
    notes: list[Note] = []
    run = tables.run_facts()
    chosen = entries(sections)
    for entry, outcome in zip(chosen, _outcomes(trace, chosen), strict=True):
        if isinstance(outcome, Skipped):
            if entry.is_expected(run) or sections is not None:
                skipped.append(outcome)
            continue
        results[entry.slug] = outcome.result
        findings.extend(outcome.findings)
        notes.extend(outcome.notes)
        described.append(outcome.section)
    if capture_kind(trace).key == "filtered":  # what is missing was removed, and is no idle time
        findings = []
    stakes = {finding.code: finding.cost_ns for finding in findings}
    findings = [finding for finding in findings if not _is_subsumed(finding, stakes)]
    has_frames = "python" in trace.host_names["category"]
    others = inapplicable(likely_frameworks(trace), run.get("producer"), has_frames=has_frames)
    needless = find_needless(trace, stakes) if findings else ()
    findings = [fit_advice(finding, others, needless) for finding in findings]
    run = {**run, "span_ns": trace.captured_ns or None}  # a summary without events has no length: None, not 0
    facts = [Fact(key, label, run.get(key), unit) for key, (label, unit) in _RUN_LABELS.items()]
    ranked = tuple(sorted(findings, key=lambda f: (-f.cost_ns, -f.severity.rank, f.code)))
    doubt, with_caveat = trace.clock_doubt, []
    for finding in say_once(ranked):  # the verdict states the caveat itself
        is_doubtful = bool(doubt) and record_of(finding.code).compares_clocks
        with_caveat.append(replace(finding, message=f"{finding.message} {doubt}") if is_doubtful else finding)
    return _with_words_of_its_api(
        Report(
            run=(*facts, Fact("devices", "devices", _devices_in_words(trace))),
            verdict=verdict(trace, results, ranked),
            sections=tuple(described),
            findings=tuple(with_caveat),
            skipped=tuple(skipped),
            notes=(
                *notes,
                *(
                    Note(row["code"], Severity(row["severity"]), row["message"], row["count"])
                    for row in tables.arrow("notes").to_pylist()
                ),
            ),
        )
    )


def _with_words_of_its_api(report: Report) -> Report:
    """Return the report in the words of HIP, if the program called that: *HIP API*, ``hipMemcpyAsync``."""
    calls = (row[0] for grid in report.grids("cuda_api") if grid.columns[0].name == "name" for row in grid.rows[:1])
    if not is_of_hip(str(next(calls, ""))):
        return report
    sections = tuple(
        replace(
            section, title=in_words_of_hip(section.title), blocks=tuple(map(_block_in_words_of_hip, section.blocks))
        )
        for section in report.sections
    )
    findings = tuple(
        replace(finding, message=in_words_of_hip(finding.message), advice=tuple(map(in_words_of_hip, finding.advice)))
        for finding in report.findings
    )
    return replace(report, sections=sections, findings=findings)


def _block_in_words_of_hip(block: Block) -> Block:
    match block:
        case Grid():
            columns = tuple(replace(column, label=in_words_of_hip(column.label)) for column in block.columns)
            return replace(block, title=in_words_of_hip(block.title), columns=columns)
        case Facts():
            return replace(block, facts=tuple(replace(one, label=in_words_of_hip(one.label)) for one in block.facts))
        case Prose():
            return replace(block, text=in_words_of_hip(block.text))
    return block


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Outcome of an analysis: its result, and the findings, notes and section from it."""

    result: Any
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
    section: Section


def _outcomes(trace: TraceView, chosen: Sequence[Entry]) -> Iterator[_Outcome | Skipped]:
    """Yield the outcome of each analysis, in their order. Analyses of a large trace run in threads.

    They spend most of their time in compiled code, which lets other threads run. Results that several analyses need are
    computed once (:class:`traceviz.analyses.derived.memo.Kept`). If polars may use only one thread, so may they. If
    tables lie in files, memory does not suffice for several analyses at a time, nor to keep results of only some.
    """
    workers = min(cores(), MAX_WORKERS)
    rows = sum(trace.tables.rows(name) for name in trace.tables)
    shared = shared_by([entry for entry in chosen if not entry.missing(frozenset(trace.tables))])
    if trace.tables.are_spilled:
        for first in shared.values():
            if first.is_first_on_disk:
                first.compute(trace)
                trace.free_memory()
        for entry in chosen:
            yield _outcome(trace, entry)
            trace.free_memory(host_classes, attribute_time)
    elif workers < 2 or rows < LARGE_ROWS:
        yield from (_outcome(trace, entry) for entry in chosen)
    else:
        outcomes = _in_threads(trace, {entry.slug: entry for entry in chosen}, shared, workers)
        yield from (outcomes[entry.slug] for entry in chosen)


def _in_threads(
    trace: TraceView, chosen: Mapping[str, Entry], shared: Mapping[str, Shared], workers: int
) -> dict[str, _Outcome | Skipped]:
    """Return the outcomes by slug. Each task starts after its dependencies; the longest chain of work starts first.

    ::

        shared      |-- steps --|--- classes ---|------ causes ------|
        analyses                |- kernels -|--- launch ---|- ... --|-- host_waits --|
    """
    tasks: dict[str, Shared | Entry] = {**shared, **chosen}
    needed = {name: {key for key in task.waits_for if key in shared} for name, task in tasks.items()}
    chain = {name: task.cost for name, task in tasks.items()}
    for name in reversed(tasks):  # a shared result only waits for those that are declared before it
        for before in needed[name]:
            chain[before] = max(chain[before], tasks[before].cost + chain[name])
    waiting = sorted(tasks, key=chain.__getitem__, reverse=True)
    outcomes: dict[str, Future[_Outcome | Skipped]] = {}
    running: dict[Future[Any], str] = {}
    ended: set[str] = set()
    with ThreadPoolExecutor(workers, "traceviz-analysis") as pool:
        try:
            while waiting or running:
                # One task more than there are threads, so that no thread waits for the scheduler.
                for name in [name for name in waiting if needed[name] <= ended][: workers + 1 - len(running)]:
                    waiting.remove(name)
                    task = tasks[name]
                    if isinstance(task, Shared):
                        running[pool.submit(task.compute, trace)] = name
                    else:
                        outcomes[name] = pool.submit(_outcome, trace, task)
                        running[outcomes[name]] = name
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(future)
                    ended.add(name)
                    if name in outcomes:  # a shared result that fails will fail again in the analyses that need it
                        outcomes[name].result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return {name: future.result() for name, future in outcomes.items()}


def cores() -> int:
    """Return the number of processors for analyses: those of the process, limited to the threads of polars."""
    return min(usable_cores(), pl.thread_pool_size())


def _outcome(trace: TraceView, entry: Entry) -> _Outcome | Skipped:
    if absent := entry.missing(frozenset(trace.tables)):
        return Skipped(entry.slug, f"the capture has no {' or '.join(absent)} table", absent)
    if is_own(entry.home):
        return _run_analysis(trace, entry.load())
    try:
        outcome = _run_analysis(trace, entry.load())
        if isinstance(outcome, _Outcome):
            for finding in outcome.findings:
                record_of(finding.code)
    except Exception as error:  # noqa: BLE001 (a plugin may raise anything, and the rest of the report needs nothing of it)
        fault = find_fault_of_plugin(error) or plugin_error(None, f"section {entry.slug!r} in {entry.home}", error)
        warn_of_plugin(fault)
        return Skipped(entry.slug, f"its plugin failed: {type(error).__name__}")
    return outcome


def _run_analysis(trace: TraceView, analysis: Analysis[Any]) -> _Outcome | Skipped:
    result = analysis.run(trace)
    if isinstance(result, Skipped):
        return result
    return _Outcome(result, tuple(analysis.judge(result)), tuple(analysis.notes(result)), analysis.describe(result))


def _is_subsumed(finding: Finding, stakes: dict[str, int]) -> bool:
    """Return whether more precise findings explain the same time.

    Args:
        finding: The finding.
        stakes: The time at stake of all findings that were raised, by code.
    """
    record = record_of(finding.code)
    explained = max((stakes.get(code, 0) for code in record.half_of), default=0)
    return not stakes.keys().isdisjoint(record.part_of) or (explained > 0 and 2 * explained >= finding.cost_ns)


_RUN_LABELS: dict[str, tuple[str, Unit]] = {
    "format": ("format", "text"),
    "producer": ("recorded by", "text"),
    "producer_version": ("version", "text"),
    "source_schema": ("schema", "text"),
    "framework": ("framework", "text"),
    "driver_version": ("driver", "text"),
    "cuda_version": ("CUDA", "text"),
    "host": ("host", "text"),
    "command": ("command", "text"),
    "t0_unix_ns": ("start, Unix time in ns", "id"),
    "span_ns": ("captured time", "ns"),
    "reader": ("read by", "text"),
}


def _devices_in_words(trace: TraceView) -> str | None:
    """Return the products of all devices that the trace names, and how many were used if some were not."""
    names = [device["name"] for device in trace.tables.arrow("devices").to_pylist() if device["name"]]
    counted = [f"{names.count(name)} × {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)]
    used = len(trace.device_busy)
    unused = f" ({used} used)" if 0 < used < len(names) else ""
    return ", ".join(counted) + unused if counted else None
