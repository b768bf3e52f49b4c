"""Ask all tools about the captures of worlds and grade their answers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.captures import Capture, flaws_of, formats_of, write_capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.other_tools.environments import home_of, is_installed, python_of
from benchmarks.diagnosis.other_tools.tools import COMPARED, SILENT, TOOLS, Tool
from benchmarks.diagnosis.score import MATTERS, Grade, draw_capture, grade, score_capture
from benchmarks.diagnosis.truth import Truth, find_truth
from benchmarks.diagnosis.worlds import World, draw_world
from traceviz.report import Verdict
from traceviz.report.verdicts import VerdictCode

ROOT = Path(__file__).parents[3]
ADAPTERS = "benchmarks.diagnosis.other_tools.adapters"
TIMEOUT = 240
"""Seconds after which a tool has failed on a capture."""
BEST_FIRST = tuple(Grade)
OURSELVES = "traceviz"
ERROR = "error"
"""Kind of a lead of a tool that failed."""


@dataclass(frozen=True, slots=True)
class Result:
    """The grade of one tool on one capture."""

    seed: int
    tool: str
    format: str
    flaw: str
    is_healthy: bool
    grade: str
    kind: str
    text: str
    gains: str


class Server:
    """The adapter of a tool, running in its environment."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._process: subprocess.Popen[str] | None = None

    def ask(self, paths: list[Path]) -> dict[str, Any]:
        """Return the answer about a capture; the process is replaced after an error that ends it."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"paths": [str(path) for path in paths]}) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], TIMEOUT)
            answer = process.stdout.readline() if ready else ""
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.stop()
            return {"error": "the process of the tool ended, or took too long"}
        return dict(json.loads(answer))

    def stop(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            with suppress(BrokenPipeError):
                self._process.communicate()  # closes the pipes
        self._process = None

    def _start(self) -> subprocess.Popen[str]:
        # The files of the tool's own working folder go to its home folder, not into the project.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home_of(self._tool))}
        self._process = subprocess.Popen(
            [python_of(self._tool), "-m", f"{ADAPTERS}.{self._tool.module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=home_of(self._tool),
            env=environment,
        )
        return self._process


_SERVERS: dict[str, Server] = {}
"""The servers of this process, by the name of their tool: a process pool starts them once for each of its processes."""


def results_of(seed: int, done: frozenset[str] = frozenset()) -> list[Result]:
    """Return the grades of all installed tools and of traceviz on a world, without the tools in ``done``."""
    truth = find_truth(draw_world(seed))
    tools = [tool for tool in TOOLS if is_installed(tool) and tool.name not in done]
    results = []
    for capture in captures_of(truth.world):
        if OURSELVES not in done:
            ours = score_capture(truth, capture)
            results.append(_result(truth, capture, OURSELVES, ours.grade, (ours.lead, ours.sentence)))
        readers = [tool for tool in tools if capture.format in tool.formats]
        if not readers:
            continue
        with tempfile.TemporaryDirectory() as folder:
            paths = write_capture(truth.record, capture, seed, Path(folder))
            for tool in readers:
                answer = _SERVERS.setdefault(tool.name, Server(tool)).ask(paths)
                lead = lead_of(tool, answer)
                results.append(_result(truth, capture, tool.name, grade_of(tool, lead, truth, capture), lead))
    return results


def captures_of(world: World) -> list[Capture]:
    """Return the captures of a world, of the newest age, with its drawn flaw where a format can have it."""
    drawn = draw_capture(world.seed).flaw
    return [
        Capture(format_, drawn if drawn in flaws_of(format_, world) else Flaw.NONE)
        for format_ in formats_of(world)
        if format_ in COMPARED
    ]


def lead_of(tool: Tool, answer: dict[str, Any]) -> tuple[str, str]:
    """Return the kind and the text of the first statement of an answer; ``error`` if there is none."""
    if "error" in answer:
        return ERROR, answer["error"]
    for statement in answer["statements"]:
        share = statement["share"]
        if share is None or share >= tool.least_share:
            return statement["kind"], statement["text"]
    return SILENT, ""


def grade_of(tool: Tool, lead: tuple[str, str], truth: Truth, capture: Capture) -> Grade:
    """Return the best grade of the keys that a statement, a kind and a text, can be read as."""
    kind, text = lead
    if kind == ERROR:
        return Grade.WRONG
    keys = (SILENT,) if kind == SILENT else tool.meaning(kind).keys
    verdicts = (Verdict(VerdictCode.CANNOT_JUDGE, text, key) for key in keys)
    return min((grade(truth, capture, verdict) for verdict in verdicts), key=BEST_FIRST.index)


def save(result: Result) -> str:
    """Return a result as a line of a file."""
    return json.dumps(asdict(result)) + "\n"


def load(path: Path) -> list[Result]:
    """Return the results in a file."""
    if not path.exists():
        return []
    return [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _result(truth: Truth, capture: Capture, tool: str, graded: Grade, lead: tuple[str, str]) -> Result:
    kind, text = lead
    gains = ", ".join(f"{knob} {gain:.0%}" for knob, gain in truth.gains.items())
    return Result(
        truth.world.seed,
        tool,
        capture.format,
        capture.flaw,
        truth.best < MATTERS,
        graded,
        kind,
        text[:300],
        gains,
    )
