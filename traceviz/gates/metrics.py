"""Figures that a budget can limit: by name, from a report or from the judgement of a comparison."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from math import fsum

from traceviz.compare.attribution import CLASS_KEYS
from traceviz.compare.judge import Judgement
from traceviz.compare.sides.sides import steady_steps
from traceviz.core.errors import UsageError
from traceviz.core.units import Unit, Value, format_value
from traceviz.report import MEASURES, Fact, Finding, Report, Severity
from traceviz.report.verdicts import InputVerdict


@dataclass(frozen=True, slots=True)
class Candidate:
    """The runs of one side, which gates judge.

    Args:
        reports: A report of each run.
        label: Display name; empty if there is only one side.
        judgement: Its difference from the base, if there is one.
    """

    reports: tuple[Report, ...]
    label: str = ""
    judgement: Judgement | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure in base ``unit``.

    Args:
        value: The value; ``None`` if it was not measured.
        unit: Its unit.
        why: Why it was not measured, or another remark.
        at_least: True if it is a lower bound, because more may exist.
    """

    value: float | None
    unit: Unit
    why: str = ""
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that a budget can limit.

    Args:
        name: Its name in budgets.
        unit: Base unit; ``None`` if only the report states it.
        meaning: Its meaning as text.
        sections: Sections of the report that it is read from.
        read: Reads it from a candidate.
        comparing: True if it exists in comparisons only.
        of_findings: True if it counts findings, which any section may have.
    """

    name: str
    unit: Unit | None
    meaning: str
    sections: tuple[str, ...]
    read: Callable[[Candidate], Reading]
    comparing: bool = False
    of_findings: bool = False


def metric(name: str) -> Metric:
    """Return the metric of this name.

    Names are those of :data:`METRICS`, ``class:``, ``api:`` or ``quality:NAME``, or ``SECTION.FACT``.

    Raises:
        UsageError: there is none; the error lists those that exist.
    """
    known = {known_metric.name: known_metric for known_metric in METRICS}
    if name in known:
        return known[name]
    kind, _, rest = name.partition(":")
    if kind == "class" and rest in CLASS_KEYS:
        return Metric(name, "ratio", f"step time of the class {rest}", _BREAKDOWN, _mean(partial(_class, (rest,))))
    if kind == "api" and rest:
        return Metric(name, "ratio", f"share of CUDA API time in {rest}", ("cuda_api",), _mean(partial(_api, rest)))
    if kind == QUALITY and rest:
        return Metric(name, "number", f"last value of {rest}", (QUALITY,), _mean(partial(_quality, rest)))
    if _FACT.fullmatch(name):
        slug, _, key = name.partition(".")
        return Metric(name, None, f"fact {key} of section {slug}", (slug,), _mean(partial(_fact, slug, key)))
    choices = [*known, *(f"class:{key}" for key in CLASS_KEYS)]
    near = get_close_matches(name, choices, 1) or get_close_matches(f"class:{name}", choices, 1)
    listed = choices if kind == "class" else [*known, "class:NAME"]
    raise UsageError(
        f"There is no metric {name!r}.",
        f"Did you mean {near[0]}?" if near else "",
        f"Known: {', '.join(listed)}, api:FUNCTION, quality:NAME, SECTION.FACT of the JSON report.",
    )


_FACT = re.compile(r"[a-z_]+\.[a-z0-9_]+")
_BREAKDOWN = ("breakdown",)
QUALITY = "quality"
"""Section of figures of quality."""


def _mean(read: Callable[[Report], Reading]) -> Callable[[Candidate], Reading]:
    """Read the mean over the runs; unknown if it is unknown in any of them."""

    def of(candidate: Candidate) -> Reading:
        readings = [read(report) for report in candidate.reports]
        unknown = next((reading for reading in readings if reading.value is None), None)
        if unknown is not None or len(readings) == 1:
            return unknown or readings[0]
        values = [reading.value for reading in readings if reading.value is not None]
        return Reading(fsum(values) / len(values), readings[0].unit)

    return of


def _absent(report: Report, slug: str, unit: Unit, otherwise: str = "") -> Reading:
    """Return an unknown figure, never zero, with the reason why the report lacks it."""
    skipped = next((skip.reason for skip in report.skipped if skip.slug == slug), "")
    has_section = any(section.slug == slug for section in report.sections)
    why = otherwise if has_section and otherwise else skipped or f"the report has no section {slug}"
    return Reading(None, unit, why)


def _number(value: Value) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _facts_of(report: Report, slug: str) -> dict[str, Fact]:
    """Return the facts of a section by key; of equal keys, the first."""
    return {fact.key: fact for fact in reversed(list(report.facts(slug)))}


def _fact(slug: str, key: str, report: Report) -> Reading:
    """Read any fact of the report.

    Raises:
        UsageError: it is not a number.
    """
    facts = _facts_of(report, slug)
    fact = facts.get(key)
    if fact is None or fact.value is None:
        numbers = ", ".join(name for name, other in facts.items() if _number(other.value) is not None)
        unknown = f"section {slug} has no {key} here, but {numbers or 'no numbers at all'}"
        why = unknown if fact is None else f"{slug}.{key} was not measured"
        return _absent(report, slug, "number" if fact is None else fact.unit, why)
    value = _number(fact.value)
    if value is None:
        shown = format_value(fact.value, "text")
        raise UsageError(f"{slug}.{key} cannot have a limit, as it is not a number.", f"Here it is {shown!r:.80}.")
    return Reading(value, fact.unit)


def _table(report: Report, slug: str, *columns: str) -> list[tuple[Value, ...]] | None:
    """Return these columns of the first grid of a section that has them all; ``None`` if there is none."""
    for grid in report.grids(slug):
        names = [column.name for column in grid.columns]
        if set(columns) <= set(names):
            positions = [names.index(column) for column in columns]
            return [tuple(row[position] for position in positions) for row in grid.rows]
    return None


def _class(keys: Sequence[str], report: Report) -> Reading:
    """Read the share of steady step time in classes, as far as the capture shows them."""
    rows = _table(report, "breakdown", "class", "share_of_step")
    shares = {str(key): _number(share) for key, share in rows or ()}
    known = [share for key in keys if (share := shares.get(key)) is not None]
    of_copies = "copy_h2d" in shares
    needed = [key for key in keys if key in shares or not (key == _RARE and of_copies)]
    if len(known) == len(needed):
        return Reading(fsum(known), "ratio")
    missing = ", ".join(key for key in needed if shares.get(key) is None)
    basis = _facts_of(report, "breakdown").get("basis")
    by = f" by the rules of {basis.value}" if basis is not None and basis.value != "traceviz" else ""
    return _absent(report, "breakdown", "ratio", f"this capture does not show the class {missing}{by}")


def _api(name: str, report: Report) -> Reading:
    """Read the share of all CUDA API time in calls of one function; zero if it is never called."""
    rows = _table(report, "cuda_api", "name", "share_of_api")
    if rows is None:
        return _absent(report, "cuda_api", "ratio")
    shares = [_number(share) or 0.0 for function, share in rows if str(function) == name]
    if shares:
        return Reading(fsum(shares), "ratio")
    near = next((str(function) for function, _ in rows if str(function).casefold() == name.casefold()), "")
    if near:
        raise UsageError(f"{name} is never called.", f"Did you mean {near}?")
    return Reading(0.0, "ratio", f"{name} is never called")


def _quality(name: str, report: Report) -> Reading:
    """Read the last value of a quality figure, by the program's name or ours; unknown if it was not finite."""
    rows = _table(report, QUALITY, "name", "label", "last")
    if rows is None:
        return _absent(report, QUALITY, "number")
    for stated, label, last in rows:
        if name.casefold() in {str(stated).casefold(), str(label).casefold()}:
            return Reading(_number(last), "number", "" if last is not None else "its last value is no finite number")
    return Reading(None, "number", f"stated are: {', '.join(str(stated) for stated, *_ in rows)}")


def _device_busy(report: Report) -> Reading:
    """Read the busy share of the steady steps, mean over devices; without steps, of the active time."""
    rows = _table(report, "device_use", "judged_utilisation") or []
    shares = [share for (value,) in rows if (share := _number(value)) is not None]
    return Reading(fsum(shares) / len(shares), "ratio") if shares else _absent(report, "device_use", "ratio")


def _device_idle(report: Report) -> Reading:
    busy = _device_busy(report)
    return busy if busy.value is None else Reading(1 - busy.value, "ratio")


def _input_share(report: Report) -> Reading:
    """Read the share behind the verdict, if a wait for input would be seen. Copies alone are only a part of it."""
    stated = _facts_of(report, "input_pipeline").get("verdict")
    verdict = InputVerdict.read(stated.value) if stated is not None else None
    if verdict is not None and not verdict.is_measured:
        return _absent(report, "input_pipeline", "ratio", f"the verdict on the input is: {verdict.value}")
    wait = _class(("input_wait",), report)
    return wait if wait.value is None else _fact("input_pipeline", "input_share", report)


def _step_mean(report: Report) -> Reading:
    times = steady_steps(report)
    return Reading(float(times.mean()), "ns") if times.size else _absent(report, "steps", "ns")


def _measure(key: str, unit: Unit, report: Report) -> Reading:
    """Read a figure of the whole run."""
    grid = next((grid for grid in report.grids(MEASURES) if grid.title == MEASURES), None)
    if grid is not None:
        names = [column.name for column in grid.columns]
        at, of = names.index("key"), names.index("value")
        value = next((_number(row[of]) for row in grid.rows if row[at] == key), None)
        if value is not None:
            return Reading(value, unit)
    outcome = _facts_of(report, MEASURES).get("outcome")
    ended = outcome is not None and outcome.value not in {None, "finished"}
    why = f"the program {_OUTCOMES.get(str(outcome.value), str(outcome.value))}" if ended and outcome else ""
    return _absent(report, MEASURES, unit, why or "it was not measured")


_OUTCOMES = {"killed": "was killed", "interrupted": "was interrupted", "timed-out": "was ended after its time limit"}
"""Text for how a program ended; other outcomes are their own text."""


def at_least(report: Report, severity: Severity) -> list[Finding]:
    """Return findings of this severity and worse."""
    return [finding for finding in report.findings if finding.severity.rank >= severity.rank]


def findings(severity: Severity, candidate: Candidate) -> Reading:
    """Count findings of this severity and worse, in the run that has most.

    If a run cannot be judged, or was not analysed in full, there may be more.
    """
    counts = [len(at_least(report, severity)) for report in candidate.reports]
    blind = [report for report in candidate.reports if report.verdict.code.is_blind]
    why = blind[0].verdict.sentence if blind else ""
    return Reading(max(counts, default=0), "count", why, at_least=bool(blind))


def _speedup(candidate: Candidate) -> Reading:
    judgement = candidate.judgement
    if judgement is None or judgement.speedup is None:
        return Reading(None, "factor", judgement.why if judgement else "there is nothing to compare with")
    return Reading(judgement.speedup, "factor")


def _share(name: str, meaning: str, *keys: str) -> Metric:
    return Metric(name, "ratio", meaning, _BREAKDOWN, _mean(partial(_class, keys)))


def _count(name: str, meaning: str, severity: Severity) -> Metric:
    return Metric(name, "count", meaning, (), partial(findings, severity), of_findings=True)


def _from(name: str, unit: Unit, meaning: str, slug: str, key: str) -> Metric:
    # Read a fact that a report's section always has if it was measured.
    def of(report: Report) -> Reading:
        fact = _facts_of(report, slug).get(key)
        value = None if fact is None else _number(fact.value)
        return _absent(report, slug, unit, f"{slug}.{key} was not measured") if value is None else Reading(value, unit)

    known_fact = _mean(of)
    return Metric(name, unit, meaning, (slug,), known_fact)


def _of_run(name: str, unit: Unit, meaning: str, key: str) -> Metric:
    return Metric(name, unit, meaning, (MEASURES,), _mean(partial(_measure, key, unit)))


_RARE = "parameter_transfer"
"""Class that a report omits if it is zero: copies were recorded, but none of this kind."""
_COPIES = (_RARE, "copy_d2h", "copy_h2d")
_STEPS = ("breakdown", "steps")
_USE = ("device_use",)

METRICS: tuple[Metric, ...] = (
    _from("step_median", "ns", "median of the steady steps", "steps", "median_ns"),
    _from("step_p95", "ns", "95th percentile of the steady steps", "steps", "p95_ns"),
    Metric("step_mean", "ns", "mean of the steady steps", _STEPS, _mean(_step_mean)),
    _share("input_wait", "steady step time in which the device idles and the program waits for input", "input_wait"),
    Metric(
        *("input_share", "ratio", "input wait and copies of input that nothing hides, of steady step time"),
        *(("breakdown", "input_pipeline"), _mean(_input_share)),
    ),
    Metric("device_busy", "ratio", "busy share of the steady steps, the mean over devices", _USE, _mean(_device_busy)),
    Metric("device_idle", "ratio", "what is left of them", _USE, _mean(_device_idle)),
    _share("communication", "steady step time in collectives that no other kernel hides", "communication"),
    _share("exposed_copies", "steady step time in copies that no kernel hides", *_COPIES),
    _share("launch", "steady step time in which the device idles until launched work starts", "kernel_launch"),
    _from("compilation", "ratio", "steady step time in which code is compiled", "compilation", "steady_share"),
    _from("peak_memory", "bytes", "most memory in use, of the device where it has a pool", "memory", "peak_bytes"),
    _from("host_cpu", "ratio", "mean use of the usable cores by the program", "host", "cpu_mean"),
    _from("host_rss", "bytes", "most memory of the program on the host", "host", "rss_max"),
    _from("host_threads", "count", "most threads of the program", "host", "threads_max"),
    _of_run("total_time", "ns", "the program from start to end, without the recording's own time", "total_ns"),
    _of_run("training_time", "ns", "from the start of the program to the end of its last step", "training_ns"),
    _of_run("startup_time", "ns", "from the start of the program to its first step", "start_ns"),
    _of_run("epoch_time", "ns", "median epoch after the first, without validation and saving", "epoch_ns"),
    _of_run("first_epoch_time", "ns", "the first epoch, without validation and saving", "first_epoch_ns"),
    _of_run("epochs", "count", "complete epochs of the run", "epochs"),
    _of_run("samples_per_second", "per_second", "samples of a step over the mean steady step", "samples_per_second"),
    _of_run("latency_p50", "ns", "median time from call to call of a model, nothing learning", "latency_p50_ns"),
    _of_run("latency_p95", "ns", "95th percentile of the time from call to call", "latency_p95_ns"),
    _of_run("latency_p99", "ns", "99th percentile of the time from call to call", "latency_p99_ns"),
    _of_run("energy", "joule", "energy of the devices from the first step to the last", "energy_j"),
    _of_run("energy_per_step", "joule", "energy of the devices per step", "energy_per_step_j"),
    _of_run("energy_per_sample", "joule", "energy of the devices per sample", "energy_per_sample_j"),
    _of_run("device_memory", "bytes", "most memory of a device over the run", "device_memory_peak_bytes"),
    _count("findings", "findings of any severity", Severity.INFO),
    _count("findings_warning", "findings that are warnings or errors", Severity.WARNING),
    _count("findings_error", "findings that are errors", Severity.ERROR),
    Metric("speedup", "factor", "mean step of the base over that of the new side", (), _speedup, comparing=True),
)
"""Every metric with a name of its own, in the order of the documentation."""
