"""Failures as files to look at, and the shortest world that still fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import traceviz
from benchmarks.diagnosis.captures import Capture, write_capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.knobs import KNOBS
from benchmarks.diagnosis.score import Grade, Scored, read_report, score_capture
from benchmarks.diagnosis.truth import Truth, find_truth
from benchmarks.diagnosis.worlds import World

TRUTH, REPORT = "truth.txt", "report.txt"
TRIES = 60
FEWEST_STEPS = 3


def clear_failures(root: Path) -> None:
    """Remove the failures of an earlier run."""
    for truth in root.glob(f"*/{TRUTH}"):
        shutil.rmtree(truth.parent)


def write_failure(truth: Truth, capture: Capture, root: Path) -> Path:
    """Write the capture, its report and the truth into a folder of ``root``, and return the folder."""
    folder = root / f"{truth.world.seed}-{capture.format}-{capture.flaw}"
    _write_world(truth, capture, folder)
    return folder


def write_shortest(truth: Truth, capture: Capture, folder: Path) -> Scored:
    """Write the shortest world that fails in the same way into the folder ``shortest``, and return its score."""
    wanted = _failure_of(truth.world, capture)
    world, capture = shrink(truth.world, capture, lambda *smaller: _failure_of(*smaller) == wanted)
    return _write_world(find_truth(world), capture, folder / "shortest")


def _failure_of(world: World, capture: Capture) -> tuple[Grade, str, str]:
    scored = score_capture(find_truth(world), capture)
    return scored.grade, scored.lead, scored.cause


def shrink(
    world: World, capture: Capture, fails: Callable[[World, Capture], bool], tries: int = TRIES
) -> tuple[World, Capture]:
    """Return a smaller world, and a capture without its flaw if that is possible, that still fails.

    Each round tries the next smaller worlds in order and goes on from the first that fails. ``tries`` bounds them.
    """
    candidates = _smaller(world, capture)
    for _ in range(tries):
        candidate = next(candidates, None)
        if candidate is None:
            break
        if fails(*candidate):
            world, capture = candidate
            candidates = _smaller(world, capture)
    return world, capture


def describe(scored: Scored) -> str:
    """Return the truth and the first sentence of a capture as two lines."""
    gains = ", ".join(f"{knob} {gain:.0%}" for knob, gain in scored.gains.items())
    hidden = f" (hiding each other: {'; '.join(scored.hiding)})" if scored.hiding else ""
    return (
        f"seed {scored.seed} {scored.capture} [{scored.grade}] true: {gains or 'healthy'}{hidden}; "
        f"lead: {scored.lead or 'none'}\n    {scored.sentence}"
    )


def describe_all(scored: Scored) -> str:
    """Return everything that was scored of a capture."""
    lines = [describe(scored)]
    for kind in ("true", "false", "other", "found", "missed"):
        subject = "causes" if kind in {"found", "missed"} else "findings"
        lines += [f"    {subject} {kind}: {', '.join(values)}" for values in [getattr(scored.findings, kind)] if values]
    lines += [f"    {kind}: {'named' if is_named else 'not named'}" for kind, is_named in scored.places.items()]
    if scored.change:
        lines.append(f"    comparison: {scored.change}")
    if scored.errors:
        errors = ", ".join(f"{name} {error:.1%}" for name, error in scored.errors.items())
        lines.append(f"    errors of step time: {errors}")
    return "\n".join(lines)


def _write_world(truth: Truth, capture: Capture, folder: Path) -> Scored:
    folder.mkdir(parents=True, exist_ok=True)
    paths = write_capture(truth.record, capture, truth.world.seed, folder)
    (folder / REPORT).write_text(traceviz.to_text(read_report(paths)), encoding="utf-8")
    scored = score_capture(truth, capture)
    text = f"{describe_all(scored)}\n\n{capture!r}\n{truth.world!r}\n"
    (folder / TRUTH).write_text(text, encoding="utf-8")
    return scored


def _smaller(world: World, capture: Capture) -> Iterator[tuple[World, Capture]]:
    """Yield the next smaller worlds: without the flaw, with fewer causes, steps, ranks, layers, operators, workers."""
    if capture.flaw is not Flaw.NONE:
        yield world, replace(capture, flaw=Flaw.NONE)
    for knob in world.strengths:
        yield world.without(knob), capture
    model = world.stages * world.tensor  # ranks of one replica
    replicas = -(-max((KNOBS[knob].ranks for knob in world.strengths), default=1) // model)
    for name, part, least in (
        ("steps", 1, FEWEST_STEPS),
        ("ranks", model, replicas),
        ("layers", 1, 1),
        ("operators", 1, 1),
        ("workers", 1, 0),
        ("helpers", 1, 0),
        ("graphs", 1, 0),
        ("prefetches", 1, 0),
    ):
        value = getattr(world, name) // part
        for smaller in sorted({least, max(least, value // 2), value - 1}):
            if least <= smaller < value:
                candidate = replace(world, **{name: smaller * part})
                # A step keeps its device time: next to a short one the host's own work would be a cause.
                kernel_ns = round(world.kernel_ns * world.device_ns / candidate.device_ns)
                yield replace(candidate, kernel_ns=kernel_ns), capture
    if world.spread:
        yield replace(world, spread=0.0), capture
