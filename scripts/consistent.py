"""Check that reports contradict neither themselves nor their traces: ``make consistent``.

Each rule compares parts of one report with one another: the headline with its candidates, findings with the exclusive
parts of the judged time, advice with the facts of the capture. A fault is a sentence that does not follow from the
numbers next to it, for any trace.

::

    python scripts/consistent.py                  # samples, public traces, cases, and 300 mutated inputs
    python scripts/consistent.py --only kineto    # traces whose path holds this, and no mutated ones
    python scripts/consistent.py --mutated 1000   # so many mutated inputs
    python scripts/consistent.py FOLDER ...       # only the traces of these folders
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import traceviz
from traceviz.analyses.derived.host.classes import DEVICE_CLASSES
from traceviz.analyses.device.precision import LIBRARY
from traceviz.analyses.headline.choice import MUCH
from traceviz.core.errors import TracevizError
from traceviz.core.units import format_ratio
from traceviz.render.first_screen import first_screen
from traceviz.report import Bars, Candidate, Grid, Report
from traceviz.report.findings.registry import record_of

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "sample_traces")]
SAMPLES = ("synthetic", "kineto", "xplane", "nsys", "causes/recorded")
ROUNDING = 0.0006
"""Shares have one digit after the point: two of one value differ by no more."""
LARGE = 0.05
"""Waits and idle time of this share of the capture are worth a word."""

_OF_THE_WHOLE = re.compile(
    r"of the captured time|of this run|of its time|before the first|from first to last", re.IGNORECASE
)
"""Words by which a sentence states the base of its judgement, or what is outside of it."""
_INNER = re.compile(r"\b(?:above all|most of all in|mostly within) [^;:.]*?\((?P<share>[\d,.]+) %")
_HELPER = re.compile(r"\bTMonitor\b|tqdm\b.*\bmonitor|_monitor\.py", re.IGNORECASE)
_STEPS = re.compile(r"\bsteps?\b", re.IGNORECASE)
_NO_STEPS = re.compile(r"\b(no|without|mark|outside)\b", re.IGNORECASE)
_NOTHING = re.compile(r"nothing was recorded|nothing recorded says")
_WORK_TO_COMPILE = ("operator_ns", "optimizer_ns", "runtime_ns", "python_ns")
_FIGURES_OF = {
    "device work": ("kernels",),
    "copies": ("copies",),
    "CUDA calls": ("cuda_api",),
    "operators": ("operators", "framework_ops"),
    "memory": ("memory",),
    "ranges of the program": ("ranges",),
    "calls of the operating system": ("os_calls",),
    "Python stacks": ("host_time",),
    "steps": ("steps",),
}
"""Sections with figures of what a first screen calls not measured."""
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
        if "copy_h2d" in record.explains and "input" in parts:  # copies of input are a part of the input
            most += parts["input"].share
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
    """*Healthy* and *not input-bound* say of how much of the capture, if a device idles in much of the rest."""
    sentence = report.verdict.sentence
    is_good = re.search(r"\bhealthy\b", sentence, re.IGNORECASE) or re.search(r"\bNot input-bound\b", sentence)
    blames = any(c.leads and c.certainty == "measured" and c.share >= MUCH for c in report.verdict.candidates)
    if blames or not is_good or _OF_THE_WHOLE.search(sentence) or "is not known" in sentence:
        return
    captured, idle = _fact(report, "capture", "span_ns"), _fact(report, "device_use", "idle_ns")
    judged_idle = sum(part.time_ns for part in report.verdict.parts if part.key not in DEVICE_CLASSES)
    is_one = _fact(report, "capture", "devices") == 1 and _fact(report, "capture", "processes") == 1
    if isinstance(captured, int) and isinstance(idle, int) and report.verdict.parts and is_one:
        outside = idle - judged_idle
        if outside >= LARGE * captured:
            yield Fault("good without its base", f"the device idles in {outside / captured:.1%} of the capture besides")


def one_number_on_a_screen(report: Report) -> Iterator[Fault]:
    """Headline, bars and findings of the first screen have one share for one cause."""
    screen = first_screen(report)
    candidates = {candidate.key: candidate for candidate in report.verdict.candidates}
    for bars in screen.bars:
        for bar in bars.bars:
            claim = candidates.get(bar.key)
            is_same = claim is not None and any(part.key == bar.key for part in report.verdict.parts)
            if claim is not None and is_same and abs(claim.share - bar.share) > ROUNDING:
                yield Fault("two numbers", f"{bar.label}: {bar.share:.1%} in a bar, {claim.share:.1%} as a candidate")
    for finding in report.findings:
        claim = candidates.get(finding.slug)
        if claim is not None and finding.share is not None and abs(claim.share - finding.share) > ROUNDING:
            yield Fault("two numbers", f"{finding.code}: {finding.share:.1%}, as a candidate {claim.share:.1%}")
    lead = next((candidate for candidate in report.verdict.candidates if candidate.leads), None)
    sentence = report.verdict.sentence
    if lead is None or lead.certainty == "at most" or not sentence:  # a bound follows from the share that is stated
        return
    # Of a healthy trace, the sentence states the computing
    shares = {lead.share, *(part.share for part in report.verdict.parts if part.key == "device_compute")}
    if not any(format_ratio(share) in sentence for share in shares):
        yield Fault("two numbers", f"{lead.label} leads with {lead.share:.1%}, and the sentence has another share")


def inner_is_within_outer(report: Report) -> Iterator[Fault]:
    """A place or culprit has at most the share that its sentence is about."""
    for statement in _sentences(report):
        for found in _INNER.finditer(statement):
            before = [_share(text) for text in _PERCENT.findall(statement[: found.start()])]
            if before and _share(found["share"]) > max(before) + ROUNDING:
                yield Fault("place of another set", f"{found.group()!r} in {statement!r}")


def columns_are_parts(report: Report) -> Iterator[Fault]:
    """Shares of one whole in a table are at most the whole: nothing was counted twice."""
    for section in report.sections:
        for block in section.blocks:
            for place, column in enumerate(block.columns if isinstance(block, Grid) else ()):
                if isinstance(block, Grid) and column.unit == "ratio" and column.bar and not column.signed:
                    values = [row[place] for row in block.rows if isinstance(row[place], float | int)]
                    largest = max(values, default=0)
                    if isinstance(largest, float | int) and largest > 1 + ROUNDING:
                        yield Fault("counted twice", f"{section.slug}, {block.title!r}: {column.name} is {largest:.1%}")


def no_helper_is_a_culprit(report: Report) -> Iterator[Fault]:
    """A thread that sleeps in the background (a progress bar's monitor) is blamed for nothing."""
    for statement in _sentences(report):
        if _HELPER.search(statement):
            yield Fault("a sleeping helper", statement)


def what_is_not_measured_has_no_figures(report: Report) -> Iterator[Fault]:
    """*Not measured: X* stands in no report with figures of X."""
    absent = first_screen(report).unseen
    for words, slugs in _FIGURES_OF.items():
        if re.search(rf"\b{words}\b", absent):
            for slug in slugs:
                if any(isinstance(block, Grid) and block.rows for block in report.blocks(slug)):
                    yield Fault("measured after all", f"{absent!r}, and section {slug} has rows")


def no_steps_without_steps(report: Report) -> Iterator[Fault]:
    """A report without steps has neither headings nor bars about steps."""
    if not any(fact.key == "steps_source" and fact.value == "none found" for fact in report.facts("capture")):
        return
    if _fact(report, "whole_run", "steps") or _has_rows(report, "steps"):
        return
    for section in report.sections:
        titles = [section.title]
        for block in section.blocks:
            titles += [block.whole, block.title] if isinstance(block, Bars) else []
            if isinstance(block, Grid) and block.audience == "all" and block.rows:
                titles += [block.title, *(column.label for column in block.columns if column.importance < 9)]
        for title in titles:
            if _STEPS.search(title) and not _NO_STEPS.search(title):
                yield Fault("steps without steps", f"{section.slug}: {title!r}")
    screen = first_screen(report)
    for text in (*(bars.title for bars in screen.bars), *(bars.whole for bars in screen.bars), screen.more):
        if _STEPS.search(text) and not _NO_STEPS.search(text):
            yield Fault("steps without steps", f"first screen: {text!r}")
    for finding in report.findings:
        if re.search(r"\bof (the )?(steady )?steps?\b", finding.message) or _STEPS.search(finding.share_of):
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
    contradicted = [(words, why) for why, words, holds in _CONTRADICTIONS if holds(report)]
    said = [(finding.code, advice) for finding in report.findings for advice in finding.advice]
    said += [("verdict", report.verdict.sentence)]
    for code, advice in said:
        for words, why in contradicted:
            if words.search(advice):
                yield Fault("advice against the capture", f"{code}, {why}: {advice}")


def only_framework_work_is_compiled(report: Report) -> Iterator[Fault]:
    """*Compile the step* is advised if at least half of the host's work is the framework's, or Python's."""
    for finding in report.findings:
        times = {fact.key: fact.value for fact in finding.evidence if isinstance(fact.value, int)}
        if finding.code == "TV205" and any(advice.startswith("Compile the step") for advice in finding.advice):
            own = sum(times.get(key, 0) for key in _WORK_TO_COMPILE)
            if 2 * own < finding.cost_ns:
                yield Fault(
                    "advice against the capture", f"{finding.code}: {own / finding.cost_ns:.1%} can be compiled"
                )


def _kind(report: Report) -> str:
    return str(_fact(report, "capture", "kind") or "").lower()


def _is_one_rank(report: Report) -> bool:
    devices = _fact(report, "capture", "devices")
    return isinstance(devices, int) and devices <= 1 and _fact(report, "capture", "ranks") is None


def _has_rows(report: Report, slug: str) -> bool:
    return any(isinstance(block, Grid) and block.rows for block in report.blocks(slug))


def _copies_are_pinned(report: Report) -> bool:
    """Return whether all recorded copies between host and device are from or to pinned memory."""
    rows = report.rows("copies") if _has_rows(report, "copies") else []
    host = [row for row in rows if row.get("kind") in {"h2d", "d2h"}]
    memory = {row.get("src_memory") if row.get("kind") == "h2d" else row.get("dst_memory") for row in host}
    return memory == {"pinned"}


def _is_of(*names: str) -> Callable[[Report], bool]:
    """Return whether a report's program uses frameworks, and none of ``names``."""

    def holds(report: Report) -> bool:
        stated = next((str(fact.value or "") for fact in report.run if fact.key == "framework"), "").lower()
        return bool(stated) and not any(name in stated for name in names)

    return holds


def _has_own_kernels_only(report: Report) -> bool:
    """Return whether no kernel of matrix products and convolutions is a library's or an operator's of a framework."""
    rows = report.rows("kernels") if _has_rows(report, "kernels") else []
    names = [str(row.get("name")) for row in rows if row.get("family") in {"gemm", "convolution", "attention"}]
    return (
        bool(names)
        and not any(re.search(LIBRARY, name) for name in names)
        and not any(_has_rows(report, slug) for slug in ("operators", "framework_ops"))
    )


def _has_frames(report: Report) -> bool:
    """Return whether Python's stacks were recorded."""
    return _has_rows(report, "host_time") or any(
        row.get("kind") in {"python", "python_wait"}
        for row in (report.rows("host_waits") if _has_rows(report, "host_waits") else [])
    )


_CONTRADICTIONS: tuple[tuple[str, re.Pattern[str], Callable[[Report], bool]], ...] = (
    ("during a graph capture", re.compile(r"CUDA graphs|torch\.compile"), lambda r: "graph capture" in _kind(r)),
    ("with one device", re.compile(r"\bDDP\b|DistributedDataParallel|bf16_compress_hook"), _is_one_rank),
    ("for a server", re.compile(r"DataLoader|StepTraceAnnotation|optimizer"), lambda r: "serving" in _kind(r)),
    ("copies are pinned", re.compile(r"from pinned memory|pin_memory=True"), _copies_are_pinned),
    ("another framework", re.compile(r"\bPyTorch: "), _is_of("torch")),
    ("another framework", re.compile(r"\bTensorFlow: "), _is_of("tensorflow", "keras")),
    ("another framework", re.compile(r"\bJAX: "), _is_of("jax", "flax")),
    ("kernels of the program's own", re.compile(r"allow_tf32|TF32|autocast"), _has_own_kernels_only),
    ("frames were recorded", re.compile(r"with_stack=True|python_tracer_level=1"), _has_frames),
    (
        "calls were recorded",
        re.compile(r"nsys profile --trace=cuda,nvtx,osrt"),
        lambda r: _has_rows(r, "cuda_api") and _has_rows(r, "os_calls"),
    ),
)
"""Reasons why advice does not fit, the words of such advice, and when the reason holds."""


def nothing_recorded_is_true(report: Report) -> Iterator[Fault]:
    """*Nothing was recorded* holds of no time that has samples, or calls of more than half of it."""
    sentence = report.verdict.sentence
    samples = _fact(report, "capture", "cpu_samples")
    if _NOTHING.search(sentence) and isinstance(samples, int) and samples:
        yield Fault("something was recorded", f"{samples} samples of the processor")
    if "nothing was recorded of what the program does" in sentence and _has_rows(report, "host_time"):
        yield Fault("something was recorded", "section host_time has rows")
    if "was not recorded" in sentence:
        for slug in ("ranges", "operators", "cuda_api", "os_calls", "host_time", "framework_ops"):
            if _has_rows(report, slug) and re.search(r"what the host did \w+ was not recorded", sentence):
                yield Fault("something was recorded", f"section {slug} has rows")


RULES: tuple[Rule, ...] = (
    one_number_per_cause,
    parts_make_a_whole,
    every_share_has_a_base,
    mostly_is_most,
    largest_is_above_all,
    parts_are_not_said_to_add_up_to_more,
    healthy_is_of_the_capture,
    one_number_on_a_screen,
    inner_is_within_outer,
    columns_are_parts,
    no_helper_is_a_culprit,
    what_is_not_measured_has_no_figures,
    no_steps_without_steps,
    advice_is_given_once,
    advice_fits_the_capture,
    only_framework_work_is_compiled,
    nothing_recorded_is_true,
)


def faults(report: Report) -> list[Fault]:
    """Return all contradictions of ``report``."""
    return [fault for rule in RULES for fault in rule(report)]


def _sentences(report: Report) -> Iterator[str]:
    for text in (report.verdict.sentence, *(finding.message for finding in report.findings)):
        yield from re.split(r"(?<=[.;]) (?=[A-Z])", text)


def _fact(report: Report, slug: str, key: str) -> object:
    return next((fact.value for fact in report.facts(slug) if fact.key == key), None)


def sources(only: str = "", folders: Sequence[Path] = ()) -> list[Path]:
    """Return the traces of ``folders``, else samples of the project, and public traces that the environment names."""
    places = list(folders) or [REPOSITORY / "sample_traces" / name for name in SAMPLES]
    for variable in () if folders else ("TRACEVIZ_TRACES", "TRACEVIZ_CASES", "TRACEVIZ_CASES2"):
        if root := os.environ.get(variable):
            places += sorted(path for path in Path(root).iterdir() if path.is_dir() and path.name != "expected")
    found = (path for place in places for path in sorted(place.iterdir()))
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
    parser.add_argument("folders", nargs="*", type=Path, help="folders with traces, instead of all known ones")
    parser.add_argument("--only", default="", help="traces whose path holds this text")
    parser.add_argument("--mutated", type=int, default=300, help="number of mutated inputs")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    count = 0
    every = [reports(sources(options.only, options.folders))]
    if not options.only and not options.folders:
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
