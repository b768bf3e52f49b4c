"""Check that reports contradict neither themselves nor their traces: ``make consistent``.

Each rule compares parts of one report with one another: the headline with its candidates, findings with the exclusive
parts of the judged time, advice with the facts of the capture. A fault is a sentence that does not follow from the
numbers beside it, whatever the trace is.

::

    python scripts/consistent.py                  # samples, public traces, cases, and 300 mutated inputs
    python scripts/consistent.py --only kineto    # traces whose path holds this, and no mutated ones
    python scripts/consistent.py --mutated 1000   # so many mutated inputs
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import traceviz
from traceviz.core.errors import TracevizError
from traceviz.report import Bars, Candidate, Fact, Facts, Grid, Report
from traceviz.report.findings.registry import record_of

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "sample_traces")]
SAMPLES = ("synthetic", "kineto", "xplane", "nsys", "causes/recorded")
ROUNDING = 0.0006
"""Shares have one digit after the point: two of one value differ by no more."""
LARGE = 0.05
"""Waits and idle time of this share of the capture are worth a word."""

_PERCENT = re.compile(r"(?:<)?([\d,]+(?:\.\d+)?) %")
_MOSTLY = re.compile(r"\bmostly ([^.;:(]*) \(([\d,.]+) %\)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One contradiction: its kind, and the two statements."""

    kind: str
    text: str


Rule = Callable[[Report], Iterator[Fault]]


def _share(text: str) -> float:
    return float(text.replace(",", "")) / 100


def one_number_per_cause(report: Report) -> Iterator[Fault]:
    """A finding has at most the time of the exclusive parts that it explains, and all of a part that it stands for."""
    parts = {candidate.key: candidate for candidate in report.verdict.candidates}
    slugs = {finding.slug for finding in report.findings}
    for finding in report.findings:
        record = record_of(finding.code)
        own = [parts[key] for key in record.explains if key in parts]
        if not own or finding.share is None or record.certainty != "measured" or record.counts_later_time:
            continue
        if record.is_of_run or record.is_sampled or any(part.share_of != finding.share_of for part in own):
            continue
        most = sum(part.share for part in own)
        if record.is_candidate and "unexplained" in parts:  # what no event covers may be of the same cause
            most += parts["unexplained"].share
        if not _fact(report, "capture", "devices"):  # then the host's own work is no part, and has what is left
            most += 1 - sum(part.share for part in parts.values() if part.key not in slugs)
        if finding.share > most + ROUNDING:
            labels = " and ".join(part.label for part in own)
            yield Fault("two numbers", f"{finding.code} has {finding.share:.1%} of {labels}, which have {most:.1%}")


def parts_make_a_whole(report: Report) -> Iterator[Fault]:
    """Exclusive parts add up to at most the whole, and so do bars."""
    sums: Counter[str] = Counter()
    slugs = {finding.slug for finding in report.findings}
    for candidate in report.verdict.candidates:
        # Devices idle in turn while another one works: this lies within the time of other parts
        is_part = candidate.key not in slugs and candidate.key != "devices_in_turn"
        if is_part and candidate.certainty != "suspected":
            sums[candidate.share_of] += candidate.share
        if candidate.share > 1 + ROUNDING:
            yield Fault("more than the whole", f"{candidate.label} has {candidate.share:.1%} of {candidate.share_of}")
    for of, share in sums.items():
        if share > 1 + ROUNDING:
            yield Fault("more than the whole", f"parts of {of} add up to {share:.1%}")
    for section in report.sections:
        for block in section.blocks:
            if isinstance(block, Bars) and sum(bar.share for bar in block.bars) > 1 + ROUNDING:
                yield Fault("more than the whole", f"bars of {section.slug}, {block.title!r}")


def every_share_has_a_base(report: Report) -> Iterator[Fault]:
    """The base of a share is named."""
    for finding in report.findings:
        if finding.share is not None and not finding.share_of:
            yield Fault("no base", f"{finding.code} has {finding.share:.1%} of what?")
    for candidate in report.verdict.candidates:
        if not candidate.share_of:
            yield Fault("no base", f"{candidate.key} has {candidate.share:.1%} of what?")


def mostly_is_most(report: Report) -> Iterator[Fault]:
    """*Mostly X* has at least half of what it is about: of the share before it in the sentence, else of the whole."""
    for statement in _sentences(report):
        for found in _MOSTLY.finditer(statement):
            before = _PERCENT.findall(statement[: found.start()])
            whole = _share(before[-1]) if before else 1.0
            shares = [_share(text) for text in _PERCENT.findall(statement[found.start() :].split(", above all")[0])]
            if sum(shares) < 0.5 * whole - ROUNDING:
                yield Fault("not most", f"{found.group()!r} of {whole:.1%}")


def largest_is_above_all(report: Report) -> Iterator[Fault]:
    """No candidate of the same kind is larger than the one that leads, unless a reason says why."""
    lead = next((candidate for candidate in report.verdict.candidates if candidate.leads), None)
    if lead is None:
        return
    for other in report.verdict.candidates:
        if other.share > 1.12 * lead.share and other.share_of == lead.share_of and _is_unreasoned(other):
            yield Fault(
                "not the largest", f"{lead.label} ({lead.share:.1%}) leads, {other.label} has {other.share:.1%}"
            )


def _is_unreasoned(candidate: Candidate) -> bool:
    return candidate.reason in {"", "Smaller."}


def parts_are_not_said_to_add_up_to_more(report: Report) -> Iterator[Fault]:
    """Shares of exclusive causes that one sentence names side by side are at most the whole."""
    named = [c for c in report.verdict.candidates if f"{c.label} (" in report.verdict.sentence or c.leads]
    codes = {finding.slug: finding.code for finding in report.findings}
    times = [(set(record_of(codes[c.key]).explains) if c.key in codes else {c.key}, c) for c in named]
    for place, (classes, candidate) in enumerate(times):
        for others, other in times[place + 1 :]:
            is_apart = not classes & others and "device_compute" not in classes | others
            if is_apart and candidate.share_of == other.share_of and candidate.share + other.share > 1 + ROUNDING:
                both = f"{candidate.label} ({candidate.share:.1%}) and {other.label} ({other.share:.1%})"
                yield Fault("more than the whole", f"side by side: {both}")


def healthy_is_of_the_capture(report: Report) -> Iterator[Fault]:
    """*Healthy* says of how much of the capture, if devices idle in much of the rest."""
    if not report.verdict.sentence.lower().count("healthy:") or "of the captured time" in report.verdict.sentence:
        return
    facts = {fact.key: fact.value for fact in _facts(report, "capture")}
    captured, judged = facts.get("span_ns"), _steps_ns(report)
    if isinstance(captured, int) and isinstance(judged, int) and judged < (1 - LARGE) * captured / 2:
        yield Fault("healthy without its base", f"steps are {judged / captured:.1%} of the capture")


def no_steps_without_steps(report: Report) -> Iterator[Fault]:
    """A report without steps has neither headings nor bars about steps."""
    if not any(fact.key == "steps_source" and fact.value == "none found" for fact in _facts(report, "capture")):
        return
    for section in report.sections:
        titles = [section.title]
        for block in section.blocks:
            titles += [block.whole, block.title] if isinstance(block, Bars) else []
            titles += [block.title] if isinstance(block, Grid) and block.audience == "all" and block.rows else []
        for title in titles:
            if re.search(r"\bsteps?\b", title) and not re.search(r"\b(no|without|mark)\b", title, re.IGNORECASE):
                yield Fault("steps without steps", f"{section.slug}: {title!r}")
    for finding in report.findings:
        if re.search(r"\bof (the )?(steady )?steps?\b", finding.message):
            yield Fault("steps without steps", f"{finding.code}: {finding.message}")


def advice_is_given_once(report: Report) -> Iterator[Fault]:
    """No advice stands twice in one report."""
    seen: dict[str, str] = {}
    for finding in report.findings:
        for advice in finding.advice:
            if advice in seen:
                yield Fault("advice twice", f"{seen[advice]} and {finding.code}: {advice}")
            seen[advice] = finding.code


def advice_fits_the_capture(report: Report) -> Iterator[Fault]:
    """Advice supposes nothing that the capture contradicts."""
    kind = str(_fact(report, "capture", "kind") or "")
    devices = _fact(report, "capture", "devices")
    texts = [(finding, advice) for finding in report.findings for advice in finding.advice]
    for finding, advice in texts:
        if "graph capture" in kind.lower() and re.search(r"CUDA graphs|torch\.compile", advice):
            yield Fault("advice against the capture", f"{finding.code} during a graph capture: {advice}")
        is_one_rank = isinstance(devices, int) and devices <= 1 and _fact(report, "capture", "ranks") is None
        if is_one_rank and re.search(r"\bDDP\b|DistributedDataParallel", advice):
            yield Fault("advice against the capture", f"{finding.code} with {devices} device: {advice}")
        if "serving" in kind.lower() and re.search(r"DataLoader|StepTraceAnnotation|optimizer", advice):
            yield Fault("advice against the capture", f"{finding.code} for a server: {advice}")


def nothing_recorded_is_true(report: Report) -> Iterator[Fault]:
    """*Nothing was recorded* holds of no time that has samples, or calls of more than half of it."""
    if "nothing was recorded" not in report.verdict.sentence and "nothing recorded says" not in report.verdict.sentence:
        return
    samples = _fact(report, "capture", "cpu_samples")
    if isinstance(samples, int) and samples:
        yield Fault("something was recorded", f"{samples} samples of the processor")


RULES: tuple[Rule, ...] = (
    one_number_per_cause,
    parts_make_a_whole,
    every_share_has_a_base,
    mostly_is_most,
    largest_is_above_all,
    parts_are_not_said_to_add_up_to_more,
    healthy_is_of_the_capture,
    no_steps_without_steps,
    advice_is_given_once,
    advice_fits_the_capture,
    nothing_recorded_is_true,
)


def faults(report: Report) -> list[Fault]:
    """Return all contradictions of ``report``."""
    return [fault for rule in RULES for fault in rule(report)]


def _steps_ns(report: Report) -> int | None:
    count, mean = _fact(report, "steps", "count"), _fact(report, "steps", "mean_ns")
    return count * mean if isinstance(count, int) and isinstance(mean, int) else None


def _sentences(report: Report) -> Iterator[str]:
    for text in (report.verdict.sentence, *(finding.message for finding in report.findings)):
        yield from re.split(r"(?<=[.;]) (?=[A-Z])", text)


def _facts(report: Report, slug: str) -> Iterator[Fact]:
    for section in report.sections:
        if section.slug == slug:
            for block in section.blocks:
                if isinstance(block, Facts):
                    yield from block.facts


def _fact(report: Report, slug: str, key: str) -> object:
    return next((fact.value for fact in _facts(report, slug) if fact.key == key), None)


def sources(only: str = "") -> list[Path]:
    """Return samples of the project, and public traces if the environment names their folders."""
    folders = [REPOSITORY / "sample_traces" / name for name in SAMPLES]
    for variable in ("TRACEVIZ_TRACES", "TRACEVIZ_CASES", "TRACEVIZ_CASES2"):
        if root := os.environ.get(variable):
            folders += sorted(path for path in Path(root).iterdir() if path.is_dir() and path.name != "expected")
    found = (
        path for folder in folders for path in sorted(folder.iterdir()) if path.suffix not in {".md", ".py", ".tsv"}
    )
    return [path for path in found if only in str(path) and path.suffix not in {".md", ".py", ".tsv"}]


def reports(paths: list[Path]) -> Iterator[tuple[str, Report]]:
    """Yield the name and the report of each path that can be read; recordings are unpacked first."""
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            source = path
            if path.suffix == ".zip":
                zipfile.ZipFile(path).extractall(folder)
                source = Path(folder)
            try:
                yield path.name, traceviz.analyze(source)
            except TracevizError:
                continue
        gc.collect()


def mutated(number: int) -> Iterator[tuple[str, Report]]:
    """Yield the reports of ``number`` spoilt inputs, from all formats in turn, that can still be read."""
    from tests.fuzz.__main__ import import_everything  # noqa: PLC0415
    from tests.fuzz.cases import Case  # noqa: PLC0415
    from tests.fuzz.formats.registry import FORMATS  # noqa: PLC0415

    import_everything()
    with tempfile.TemporaryDirectory() as folder:
        formats = [(name, spec) for name, spec in FORMATS.items() if name != "archive"]
        samples = {}
        for name, spec in formats:
            home = Path(folder, "samples", name)
            home.mkdir(parents=True)
            spec.samples(home)
            samples[name] = sorted(home.iterdir())
        for place in range(number):
            name, spec = formats[place % len(formats)]
            case = Case(spec, place)
            home = Path(folder, str(place))
            home.mkdir()
            yield from ((case.command, report) for _, report in reports([case.make(samples[name], home)]))


def main() -> int:
    """Check all reports, print what contradicts, and return 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="traces whose path holds this text")
    parser.add_argument("--mutated", type=int, default=300, help="number of mutated inputs")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    count = 0
    every = [reports(sources(options.only))]
    if not options.only:
        every.append(mutated(options.mutated))
    for some in every:
        for name, report in some:
            count += 1
            for fault in faults(report):
                kinds[fault.kind] += 1
                print(f"{name}\n    {fault.kind}: {fault.text}")
    print(f"{count} reports: " + (", ".join(f"{kind} {times}" for kind, times in kinds.items()) or "no contradiction"))
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
