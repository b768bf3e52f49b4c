"""Predicted step times without a cause, against the simulator's rerun without it."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import traceviz
from benchmarks.diagnosis.captures import Capture, write_capture
from benchmarks.diagnosis.knobs import KNOBS, Knob
from benchmarks.diagnosis.score import MATTERS
from benchmarks.diagnosis.truth import run
from benchmarks.diagnosis.worlds import draw_world
from traceviz.core.errors import TracevizError
from traceviz.report import Report

PLACES = {Knob.SMALL_KERNELS: ("add",)}
"""Names of operators that a cause of the simulator consists of, besides those of :data:`KNOBS`."""
SAME_STEP = 0.02
"""Steps of a report are those of the record with these numbers if their durations differ by at most this share."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A prediction of a report, and the true mean step without the cause; both as shares of the step with it."""

    seed: int
    capture: Capture
    knob: Knob
    label: str
    low: float
    high: float
    true: float
    hidden: bool
    """True if the world has another cause as well, which may become the limit."""

    @property
    def is_inside(self) -> bool:
        """True if the interval has the true value."""
        return self.low <= self.true <= self.high

    @property
    def width(self) -> float:
        """Upper end over lower end."""
        return self.high / self.low if self.low > 0 else float("inf")


def check_seed(seed: int, captures: list[Capture]) -> list[Checked]:
    """Check the predictions on captures of a training world, for each cause that matters."""
    world = draw_world(seed)
    if world.serves or not world.strengths:
        return []
    record = run(world)
    with_cause = record.step_times
    checked = []
    for capture in captures:
        with tempfile.TemporaryDirectory() as folder:
            try:
                report = traceviz.report_on(
                    *write_capture(record, capture, seed, Path(folder)), sections=["steps", "what_if"]
                )
            except TracevizError:
                continue
        if not {"steps", "what_if"} <= {section.slug for section in report.sections}:
            continue
        steps = steady_steps(report, with_cause)
        found = {knob: find_prediction(report, knob) for knob in world.strengths}
        for knob, prediction in found.items():
            if prediction is None:
                continue
            # A prediction for the input is about all causes that make the program wait for it.
            together = [other for other, its in found.items() if its == prediction]
            if knob is not together[0]:
                continue
            other_world = world
            for other in together:
                other_world = other_world.without(other)
            times = run(other_world).step_times
            true = mean(times[step] for step in steps) / mean(with_cause[step] for step in steps)
            if 1 - true >= MATTERS:
                label, low, high = prediction
                is_hidden = len(world.strengths) > len(together)
                checked.append(Checked(seed, capture, knob, label, low, high, true, is_hidden))
    return checked


def steady_steps(report: Report, times: list[int]) -> list[int]:
    """Return the numbers in a record of the steps that a report predicts for: the first of its steady steps.

    All but the first count as steady if they cannot be matched.
    """
    rows = [row for row in report.rows("steps") if not row["warmup"] and not row["cut"]]
    numbers = [int(row["step"] or 0) for row in rows]
    same = [
        number
        for number, row in zip(numbers, rows, strict=True)
        if 0 <= number < len(times) and abs(int(row["dur_ns"] or 0) / times[number] - 1) <= SAME_STEP
    ]
    steady = (
        sorted(set(same))
        if same and 2 * len(same) >= len(set(numbers))
        else list(range(min(1, len(times) - 1), len(times)))
    )
    # Of all ranks; predictions are about these steps.
    replayed = next((fact.value for fact in report.facts("what_if") if fact.key == "replayed"), None)
    return steady[: max(1, round(len(steady) * replayed / len(rows)))] if isinstance(replayed, int) else steady


def find_prediction(report: Report, knob: Knob) -> tuple[str, float, float] | None:
    """Return what a report predicts for a cause, if it does: the label, and the ends as shares of the step."""
    facts, places = KNOBS[knob], (*KNOBS[knob].places, *PLACES.get(knob, ()))
    for row in report.rows("what_if"):
        key, label = str(row["part"]), str(row["label"])
        is_named = any(re.search(rf"\b{re.escape(place.strip(' ('))}", label) for place in places)
        if not row["not_proven"] and (is_named or (key != "host" and key in facts.answers)):
            step = float(row["step_ns"] or 1)
            return label, float(row["low_ns"] or 0) / step, float(row["high_ns"] or 0) / step
    return None


def summarize(checks: list[Checked]) -> str:
    """Return coverage and median width, by cause and by format, and of all."""
    return "\n\n".join(
        (
            _table(checks, "cause", lambda check: check.knob),
            _table(checks, "format", lambda check: check.capture.format),
            _table(checks, "flaw", lambda check: check.capture.flaw),
            _table(checks, "causes in the world", lambda check: "several" if check.hidden else "one"),
            _line(checks),
        )
    )


def describe_check(check: Checked) -> str:
    """Return one line about a prediction that failed."""
    return (
        f"seed {check.seed} {check.capture} {check.knob} [{check.label}]: "
        f"true {check.true:.3f} of the step, predicted {check.low:.3f} to {check.high:.3f}"
    )


def _table(checks: list[Checked], title: str, row: Callable[[Checked], str]) -> str:
    groups: dict[str, list[Checked]] = defaultdict(list)
    for check in checks:
        groups[row(check)].append(check)
    lines = [f"{title:24} {'inside':>8} {'of':>5} {'width':>7}"]
    for name, own in sorted(groups.items()):
        inside = mean(check.is_inside for check in own)
        lines.append(f"{name:24} {inside:8.0%} {len(own):5} {median(check.width for check in own):7.2f}")
    return "\n".join(lines)


def _line(checks: list[Checked]) -> str:
    if not checks:
        return "inside: no predictions"
    inside, width = mean(check.is_inside for check in checks), median(check.width for check in checks)
    return f"inside: {100 * inside:.1f} %, median width: {width:.2f}, predictions: {len(checks)}"
