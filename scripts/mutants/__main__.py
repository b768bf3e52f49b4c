"""``make mutants``: how much of a change in what computes a report the tests notice.

A fixed sample of mutants: one small change each, of the analyses, of what they compute with, of compare, and of the
columns of the readers. A test that fails has noticed. Mutants that nobody could notice are in ``equivalent.toml``, each
with the reason, and count for nothing. No file of the repository is changed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import contexts
import worker
from places import Mutant, mutants

HERE = Path(__file__).resolve().parent
SEED = "traceviz"
MARKS = "not live and not oracle and not slow"
TESTS = ("analyses", "compare", "core", "doctor", "gates", "parsers", "render", "report", "samples", "trace")
NOTICED = ("killed", "timeout")
MOST_SECONDS = 90.0
"""Bound on the measured time of one mutant's tests, in seconds."""


@dataclass(slots=True)
class Course:
    """State of a mutant: the tests to run, and the result so far."""

    mutant: Mutant
    stages: list[tuple[str, ...]]
    outcome: str = "survived"
    killer: str = ""
    seconds: float = 0.0
    tests: int = 0


@dataclass(frozen=True, slots=True)
class Map:
    """Map from lines to the tests that run them."""

    root: Path
    lines: dict[str, dict[int, set[str]]]
    seconds: dict[str, float]
    by_file: dict[str, list[str]] = field(default_factory=dict)

    def stages(self, mutant: Mutant, importers: Iterable[str]) -> list[tuple[str, ...]]:
        """Return the tests of a mutant in stages: of the file, near it, all that run the line, all in the same files.

        The last stage is for results that a file of tests computes once: only the first test that uses them runs the
        line.
        """
        lines = self.lines.get(str(self.root / mutant.path), {})
        if mutant.is_run:
            found = set().union(*(lines.get(at, ()) for at in range(mutant.first_line, mutant.last_line + 1)))
        else:
            found = set().union(*lines.values()) if lines else set()
            for name in importers:
                found |= set().union(*self.lines.get(str(self.root / name), {}).values())
        own = {test for test in found if _mirrors(test, mutant.path)}
        near = {test for test in found - own if test.startswith(_folder(mutant.path))}
        files = {test.partition("::")[0] for test in found}
        beside = {test for file in files for test in self.by_file[file]} - found
        parts = (own, near, found - own - near)
        chosen = [stage for part in parts for stage in _by_files(self._cheapest(part, MOST_SECONDS))]
        return [stage for stage in (*chosen, self._cheapest(beside, 30)) if stage]

    def _cheapest(self, tests: set[str], most: float) -> tuple[str, ...]:
        """Return the quickest tests, file by file, as many as take ``most`` seconds."""
        by_file: defaultdict[str, list[str]] = defaultdict(list)
        total = 0.0
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            total += self.seconds[test]
            if total > most:
                break
            by_file[test.partition("::")[0]].append(test)
        order = sorted(by_file.values(), key=lambda tests: sum(self.seconds[test] for test in tests) / len(tests))
        return tuple(test for tests in order for test in tests)


def _by_files(tests: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield tests of a few files each, then of more: importing a file of tests takes longer than most of its tests."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    begin, most = 0, 2
    while begin < len(files):
        now = set(files[begin : begin + most])
        yield tuple(test for test in tests if test.partition("::")[0] in now)
        begin, most = begin + most, most * 3


def _folder(path: str) -> str:
    """Return the folder of tests that mirrors that of ``path``."""
    return f"{Path('tests') / Path(path.removeprefix('traceviz/')).parent}/"


def _mirrors(test: str, path: str) -> bool:
    """Return whether ``test`` is in the file of tests that mirrors ``path``."""
    return test.partition("::")[0] == f"{_folder(path)}test_{Path(path).name}"


def measure(root: Path, folder: Path, jobs: int) -> Map:
    """Run the tests once, and record the lines that each of them runs."""
    files = sorted({str(root / mutant.path) for mutant in mutants(root)})
    (folder / "files.json").write_text(json.dumps(files), "utf-8")
    paths = [f"tests/{name}" for name in TESTS] + sorted(
        path.relative_to(root).as_posix() for path in root.glob("tests/test_*.py")
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "contexts", "-p", "no:cacheprovider", "-m", MARKS, *paths]
    parallel = ["--numprocesses", str(jobs), "--dist", "worksteal"] if jobs > 1 else []
    environment = {**os.environ, "CONTEXTS": str(folder), "PYTHONPATH": str(HERE)}
    subprocess.run([*command, *parallel], cwd=root, env=environment, check=False)
    return known(root, folder)


def known(root: Path, folder: Path) -> Map:
    """Return the result of :func:`measure`."""
    lines, seconds = contexts.read(folder)
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for test in seconds:
        by_file[test.partition("::")[0]].append(test)
    return Map(root, lines, seconds, dict(by_file))


def importers(root: Path, paths: Iterable[str]) -> dict[str, list[str]]:
    """Return, for each file, the files that import it."""
    texts = {path: (root / path).read_text("utf-8") for path in paths}
    names = {
        path: ".".join(Path(path if path.startswith("traceviz/") else f"traceviz/{path}").with_suffix("").parts)
        for path in texts
    }
    return {
        path: [
            other
            for other, text in texts.items()
            if f"from {name} import" in text
            or f"from {name.rpartition('.')[0]} import {name.rpartition('.')[2]}\n" in text
        ]
        for path, name in names.items()
    }


def run(courses: Sequence[Course], root: Path, logs: Path, jobs: int, seconds: dict[str, float]) -> None:
    """Run every mutant through its tests, until one fails."""
    waiting = list(reversed(courses))
    running: dict[int, tuple[Course, Path, float]] = {}
    done = 0
    while waiting or running:
        while waiting and len(running) < jobs:
            course = waiting.pop()
            if not course.stages:
                done += 1
                print(
                    f"{done}/{len(courses)} {course.outcome:9} {course.seconds:5.1f} s  {course.mutant.path}",
                    flush=True,
                )
                continue
            tests = course.stages.pop(0)
            log = logs / f"{course.mutant.identity}.{len(course.stages)}.log"
            limit = 20 + 4 * sum(seconds[test] for test in tests)
            course.tests += len(tests)
            file = root / course.mutant.path
            job = worker.Job(root, file, course.mutant.code(root), tests, limit, log)
            running[worker.start(job)] = course, log, time.monotonic()
        if not running:
            continue
        pid, status = os.wait()
        course, log, started = running.pop(pid)
        course.seconds += time.monotonic() - started
        _judge(course, worker.outcome(status), log)
        waiting.append(course)


def _judge(course: Course, code: int, log: Path) -> None:
    if code == 0:
        return
    course.stages.clear()
    course.outcome = {worker.OUT_OF_TIME: "timeout", 1: "killed", 2: "killed"}.get(code, f"broken ({code})")
    failed = [line for line in log.read_text("utf-8", "replace").splitlines() if "FAILED " in line]
    course.killer = json.loads(failed[0].partition("FAILED ")[2]) if failed else ""


def control(root: Path, courses: Sequence[Course], logs: Path, seconds: dict[str, float]) -> bool:
    """Return whether the tests that killed a mutant pass without a change, in a process of the same kind."""
    killers = tuple(dict.fromkeys(course.killer for course in courses if course.killer in seconds))
    job = worker.Job(root, None, "", killers, 60 + 6 * sum(seconds[test] for test in killers), logs / "control.log")
    return os.waitpid(worker.start(job), 0)[1] == 0


def equivalents() -> dict[str, str]:
    """Return the reasons why some mutants cannot be noticed, by identity."""
    entries = tomllib.loads((HERE / "equivalent.toml").read_text("utf-8")).get("mutant", [])
    return {entry["id"]: entry["why"] for entry in entries}


def table(courses: Sequence[Course]) -> str:
    """Return a table of the results, by folder."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for course in courses:
        counts[str(Path(course.mutant.path).parent)][course.outcome] += 1
    kinds = ("killed", "timeout", "survived", "equivalent")
    total: Counter[str] = sum(counts.values(), Counter())
    lines = [f"{'':34}" + "".join(f"{kind:>12}" for kind in kinds) + f"{'rate':>8}"]
    for name, found in (*sorted(counts.items()), ("all", total)):
        judged = found.total() - found["equivalent"]
        rate = f"{(found['killed'] + found['timeout']) / judged:8.1%}" if judged else f"{'':8}"
        lines.append(f"{name:34}" + "".join(f"{found[kind]:12}" for kind in kinds) + rate)
    return "\n".join(lines)


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="how many mutants (300)")
    parser.add_argument("--seed", default=SEED, help="another sample")
    parser.add_argument("--only", default="", help="only mutants whose path, function or id contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--root", type=Path, default=HERE.parent.parent, help="the repository")
    parser.add_argument("--map", type=Path, help="folder for which test runs which line; kept for the next run")
    parser.add_argument(
        "--output", type=Path, default=Path("build/mutants.json"), help="every mutant and what became of it"
    )
    parser.add_argument("--list", action="store_true", help="only show the mutants")
    parser.add_argument("--at-least", type=float, default=0.0, help="fail below this share of noticed mutants")
    return parser.parse_args()


def row(course: Course, root: Path, why: Mapping[str, str]) -> dict[str, Any]:
    """Return the saved facts about a mutant."""
    mutant = course.mutant
    known_facts = {"id": mutant.identity, "path": mutant.path, "function": mutant.function, "line": mutant.line}
    became = {"outcome": course.outcome, "killer": course.killer, "tests": course.tests}
    return {**known_facts, **became, "why": why.get(mutant.identity), "diff": mutant.diff(root)}


def run_in(
    folder: Path, chosen: Sequence[Mutant], every: Sequence[Mutant], asked: argparse.Namespace
) -> list[Course] | None:
    """Return the courses of ``chosen`` after their tests; ``None`` if these fail without a change as well."""
    root, logs = asked.root.resolve(), folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    found = known(root, folder) if any(folder.glob("*.coverage")) else measure(root, folder, asked.jobs)
    # Mutants that cannot be noticed get no tests.
    why = equivalents()
    imported_by = importers(found.root, {mutant.path for mutant in every})
    courses = [
        Course(mutant, [], "equivalent")
        if mutant.identity in why
        else Course(mutant, found.stages(mutant, imported_by[mutant.path]))
        for mutant in chosen
    ]
    worker.warm_up()
    run(courses, root, logs, asked.jobs, found.seconds)
    if control(root, courses, logs, found.seconds):
        return courses
    print((logs / "control.log").read_text("utf-8", "replace")[-3000:])
    return None


def main() -> int:
    """Take the sample, run it, and show the mutants that no test noticed."""
    asked = options()
    root = asked.root.resolve()
    every = mutants(root)
    chosen = [mutant for mutant in every if asked.only in f"{mutant.path} {mutant.function} {mutant.identity}"]
    chosen = sorted(chosen, key=lambda mutant: mutant.rank(asked.seed))[: asked.count]
    if asked.list:
        for mutant in chosen:
            print(f"{mutant.identity} {mutant.path} {mutant.function}\n{mutant.diff(root)}\n")
        return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        courses = run_in(asked.map or Path(temporary), chosen, every, asked)
    if courses is None:
        print("Tests that killed mutants fail without any change as well: the figures say nothing.")
        return 2
    why = equivalents()
    rows = [row(course, root, why) for course in sorted(courses, key=lambda one: (one.mutant.path, one.mutant.line))]
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(json.dumps(rows, indent=1), "utf-8")
    for one in rows:
        if one["outcome"] not in {*NOTICED, "equivalent"}:
            print(
                f"\n{one['id']} {one['outcome']} {one['path']} {one['function']} ({one['tests']} tests)\n{one['diff']}"
            )
    took = time.monotonic() - started
    print(f"\n{table(courses)}\n\n{len(rows)} of {len(every)} mutants in {took:.0f} s: {asked.output}")
    judged = [course for course in courses if course.outcome != "equivalent"]
    return int(sum(course.outcome in NOTICED for course in judged) < asked.at_least * len(judged))


if __name__ == "__main__":
    sys.exit(main())
