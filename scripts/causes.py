"""Score the first sentence of reports by what is known to be true of their traces, and write it into docs/causes.md.

The truths are in ``scripts/causes.toml``, and those of small programs that ``collect`` recorded in
``sample_traces/causes/expected.toml``, found without traceviz. Samples and programs are always scored; public traces
if TRACEVIZ_TRACES and TRACEVIZ_CASES name their folders. Rows of unavailable traces stay unchanged.
Next to the sentence about a program, the table has the one about the recording of the framework's profiler alone.

::

    python scripts/causes.py                      # score, and write the table
    python scripts/causes.py --only kineto        # score traces whose path holds this, and write nothing
    python scripts/causes.py --at-least 0.85      # exit 1 if fewer are right or honest, or one blames falsely
    python scripts/causes.py --runs FOLDER        # score FOLDER/NAME, the runs of programs that were just recorded
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import traceviz
from scripts import cause_programs
from traceviz.core.errors import TracevizError
from traceviz.trace import schema
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select
from traceviz.trace.tables import TraceTables

REPOSITORY = Path(__file__).resolve().parent.parent
TRUTHS = REPOSITORY / "scripts" / "causes.toml"
PAGE = REPOSITORY / "docs" / "causes.md"
BEGIN = "<!-- begin: written by make causes from scripts/causes.toml -->"
END = "<!-- end: written by make causes -->"
COLLECTIONS = {
    "samples": "Samples",
    "traces": "Public traces",
    "cases": "Public traces on which reports were wrong",
    "causes": "Programs with one cause, recorded by collect",
}
"""Folders of :attr:`Truth.file`, and the titles of their tables."""
PROGRAMS = "causes"
"""The collection of runs."""
PROFILERS = frozenset({"jax", "tensorflow", "torch"})
"""Collectors that record with the profiler of a framework."""
WORK_OF_OTHERS = ("oversubscri", "want a core")
"""Patterns of blame on other programs: false for all recorded programs, because none has too many threads."""

_PERCENT = re.compile(r"(?<![\d.])([\d,]+(?:\.\d+)?) %")


class Judgement(StrEnum):
    """Score of a first sentence."""

    RIGHT = "right"
    HONEST = "honest"
    WRONG = "wrong"
    FALSE = "false blame"


GOOD = frozenset({Judgement.RIGHT, Judgement.HONEST})


@dataclass(frozen=True, slots=True)
class Truth:
    """True facts about a trace, and the sentences that they allow; see the head of ``scripts/causes.toml``."""

    file: str
    truth: str
    known: str
    right: tuple[str, ...] = ()
    share: tuple[float, float] | None = None
    honest: tuple[str, ...] = ()
    false: tuple[str, ...] = ()

    @property
    def collection(self) -> str:
        """First part of the path: one of :data:`COLLECTIONS`."""
        return self.file.partition("/")[0]

    @property
    def name(self) -> str:
        """Path inside of the collection."""
        return self.file.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Said:
    """Sentences of a report: its first sentence, and the messages of its findings.

    ``alone`` is the first sentence about the part of a run that the framework's profiler recorded.
    """

    sentence: str
    messages: tuple[str, ...] = ()
    alone: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """A truth, the sentences of the report, and their score, with the reason if it is not right."""

    truth: Truth
    said: Said
    judgement: Judgement
    reason: str = ""


def truths(path: Path = TRUTHS) -> tuple[Truth, ...]:
    """Return all truths, in the order of the files."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["trace"]
    recorded = [
        {key: value for key, value in program.items() if key not in {"name", "launch", "collect"}}
        | {"file": f"causes/{program['name']}.zip", "false": [*program.get("false", ()), *WORK_OF_OTHERS]}
        for program in cause_programs.programs()
    ]
    return tuple(
        Truth(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
        for entry in [*entries, *recorded]
    )


def judge(truth: Truth, said: Said) -> Scored:
    """Score a report. False blame outweighs the right name; an honest sentence is as good as a right one."""
    sentence, *messages = said.sentence, *said.messages
    if truth.collection == "causes":
        # The name of a program names its problem: a report that repeats it has not found the problem.
        name = Path(truth.name).stem
        sentence, *messages = (text.replace(name, "program") for text in (sentence, *messages))
    blamed = _first_match(truth.false, (sentence, *messages))
    if blamed:
        return Scored(truth, said, Judgement.FALSE, f'says "{blamed}"')
    # Parts with "Also: " do not count: the true cause has to lead, or to be as large.
    leading = " ".join(part for part in re.split(r"(?<=[.]) (?=[A-Z])", sentence) if not part.startswith("Also: "))
    lacks = [pattern for pattern in truth.right if not _holds(pattern, leading)]
    right = bool(truth.right) and not lacks
    if right and _states_share(truth, leading):
        return Scored(truth, said, Judgement.RIGHT)
    if truth.honest and all(_holds(pattern, sentence) for pattern in truth.honest):
        return Scored(truth, said, Judgement.HONEST)
    if right:
        return Scored(truth, said, Judgement.WRONG, f"no share of {truth.share} %")
    lacks = lacks or [pattern for pattern in truth.honest if not _holds(pattern, sentence)]
    return Scored(truth, said, Judgement.WRONG, f"does not say {' and '.join(lacks)}")


def _holds(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _first_match(patterns: Iterable[str], texts: Sequence[str]) -> str:
    for pattern in patterns:
        for text in texts:
            found = re.search(pattern, text, re.IGNORECASE)
            if found:
                return found.group()
    return ""


def _states_share(truth: Truth, sentence: str) -> bool:
    if truth.share is None:
        return True
    least, greatest = truth.share
    return any(least <= float(number.replace(",", "")) <= greatest for number in _PERCENT.findall(sentence))


def folders(environment: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Return the folders of the available collections."""
    named = {"traces": environment.get("TRACEVIZ_TRACES"), "cases": environment.get("TRACEVIZ_CASES")}
    shipped = {"samples": REPOSITORY / "sample_traces", "causes": cause_programs.RECORDED}
    return shipped | {key: Path(value) for key, value in named.items() if value}


def at_hand(truth: Truth, places: Mapping[str, Path]) -> Path | None:
    """Return the trace if it exists and can be read: an nsys report needs nsys, or the same as SQLite next to it."""
    if truth.collection not in places:
        return None
    path = places[truth.collection] / truth.name
    needs_nsys = path.suffix in {".nsys-rep", ".qdrep"} and not path.with_suffix(".sqlite").exists()
    return path if path.exists() and not (needs_nsys and shutil.which("nsys") is None) else None


def say(path: Path) -> Said:
    """Return the sentences of the report of a trace, or the error if there is no report."""
    try:
        if path.suffix == ".zip":
            with cause_programs.unpacked(path) as tables:
                return _say_of_run(tables)
        report = traceviz.report_on(path)
    except TracevizError as error:
        return Said(str(error).replace(str(path), path.name))
    return Said(report.verdict.sentence, tuple(finding.message for finding in report.findings))


def _say_of_run(folder: Path) -> Said:
    """Return the sentences about a run, and about the part that a framework's profiler recorded."""
    report = traceviz.report_on(folder)
    profiled = recorded_by(traceviz.open(folder), PROFILERS)
    alone = "" if profiled is None else traceviz.analyze(profiled).verdict.sentence
    return Said(report.verdict.sentence, tuple(finding.message for finding in report.findings), alone)


def recorded_by(run: TraceTables, collectors: Collection[str]) -> TraceTables | None:
    """Return the tables of a run that these collectors recorded, in their time; ``None`` if there are none."""
    windows = [row for row in run.arrow("windows").to_pylist() if row["source"] in collectors]
    names = {row["recorded"] for row in windows}
    if not names:
        return None
    begin, end = min(row["start_ns"] for row in windows), max(row["start_ns"] + row["dur_ns"] for row in windows)
    kept = TraceTables({name: run.arrow(name) for name in run if name in names or name in schema.REQUIRED})
    return select(kept, Selection(start_ns=begin, end_ns=end))


def said_in(document: Mapping[str, Any]) -> Said:
    """Return the sentences of a report in JSON."""
    return Said(document["verdict"]["sentence"], tuple(finding["message"] for finding in document["findings"]))


def score(wanted: Iterable[Truth], places: Mapping[str, Path]) -> Iterator[Scored]:
    """Yield the scores of the available traces, one after the other."""
    for truth in wanted:
        path = at_hand(truth, places)
        if path is not None:
            yield judge(truth, say(path))


def score_runs(wanted: Iterable[Truth], folder: Path) -> Iterator[Scored]:
    """Yield the scores of the programs that have a run in ``folder``."""
    for truth in wanted:
        run = folder / Path(truth.name).stem
        if truth.collection == "causes" and run.is_dir():
            yield judge(truth, _say_of_run(run))


def summary(scored: Sequence[Scored]) -> str:
    """Return the score in a line."""
    counts = Counter(one.judgement for one in scored)
    good = sum(counts[judgement] for judgement in GOOD)
    parts = ", ".join(f"{counts[judgement]} {judgement}" for judgement in Judgement)
    return f"{good} of {len(scored)} right or honest ({good / max(1, len(scored)):.1%}): {parts}"


def page(text: str, scored: Iterable[Scored], all_truths: Sequence[Truth]) -> str:
    """Return the page with the tables between its markers; a trace that was not scored keeps its row.

    Raises:
        ValueError: The page lacks a marker.
    """
    before, begin, rest = text.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no place for the tables: the markers are missing")
    rows = {row.split("`")[1]: row for row in old.splitlines() if row.startswith("| `")}
    rows |= {one.truth.file: _row(one) for one in scored}
    tables = [_table(collection, all_truths, rows) for collection in COLLECTIONS]
    marks = Counter(row.removesuffix(" |").rpartition(" | ")[2] for row in rows.values())
    good = sum(marks[judgement] for judgement in GOOD)
    head = f"{good} of {len(rows)} are right or honest; {marks[Judgement.FALSE]} blame falsely."
    return "\n\n".join([before + BEGIN, head, *tables, END]) + after


def _table(collection: str, all_truths: Sequence[Truth], rows: Mapping[str, str]) -> str:
    own = [rows[truth.file] for truth in all_truths if truth.collection == collection and truth.file in rows]
    titles = ["trace", "true cause", "how it is known", "first sentence of the report", "judged"]
    if collection == PROGRAMS:
        titles.insert(-1, "the same of the framework's profiler alone")
    head = f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"
    return "\n".join([f"### {COLLECTIONS[collection]}", "", head, *own])


def _row(one: Scored) -> str:
    alone = [one.said.alone] if one.truth.collection == PROGRAMS else []
    cells = (one.truth.truth, one.truth.known, one.said.sentence, *alone, one.judgement)
    return f"| `{one.truth.file}` | {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return re.sub(r"[\\|<>*_\[\]]", r"\\\g<0>", " ".join(text.split()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 1 if the score is below the requested one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="score only traces whose path holds this; write nothing")
    parser.add_argument("--at-least", type=float, default=0.0, help="share that has to be right or honest")
    parser.add_argument("--runs", type=Path, help="score the run folders in this folder; write nothing")
    options = parser.parse_args(arguments)
    every = truths()
    scored = []
    wanted = [truth for truth in every if options.only in truth.file]
    for one in score_runs(wanted, options.runs) if options.runs else score(wanted, folders()):
        scored.append(one)
        if one.judgement not in GOOD:
            print(f"{one.judgement}: {one.truth.file}: {one.reason}")
            print(f"    says: {one.said.sentence}\n    true: {one.truth.truth}")
    print(summary(scored))
    if not options.only and not options.runs:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), scored, every), encoding="utf-8")
    good = sum(one.judgement in GOOD for one in scored)
    false = sum(one.judgement is Judgement.FALSE for one in scored)
    return int(options.at_least > 0 and (false > 0 or good < options.at_least * len(scored)))


if __name__ == "__main__":
    sys.exit(main())
