"""Commands: score worlds, show one, write its captures."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.diagnosis.captures import Capture, write_capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.knobs import Format
from benchmarks.diagnosis.predictions import check_seed, describe, summarize
from benchmarks.diagnosis.score import (
    GOOD,
    Scored,
    cross_table,
    draw_capture,
    score_capture,
    score_seed,
    summary,
    table,
)
from benchmarks.diagnosis.truth import find_truth
from benchmarks.diagnosis.worlds import draw_world

FAILURES = Path("build/diagnosis/failures.txt")


def main() -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    score = commands.add_parser("score", help="score reports on many worlds")
    score.add_argument("--seeds", default="1-200", help="first and last seed")
    score.add_argument("--clean", action="store_true", help="captures without flaws only")
    score.add_argument("--every-format", action="store_true", help="all formats of each world, not one")
    score.add_argument("--jobs", type=int, default=1, help="processes")
    predict = commands.add_parser("predict", help="check predicted step times against runs without the cause")
    predict.add_argument("--seeds", default="1-200", help="first and last seed")
    predict.add_argument("--clean", action="store_true", help="captures without flaws only")
    predict.add_argument("--jobs", type=int, default=1, help="processes")
    show = commands.add_parser("show", help="show the truth of a world, and the reports on its captures")
    write = commands.add_parser("write", help="write the captures of a world as files")
    write.add_argument("folder", type=Path)
    show.add_argument("--format", type=Format, choices=list(Format), help="one format, not all")
    for command in (show, write):
        command.add_argument("--seed", type=int, required=True)
        command.add_argument("--flaw", type=Flaw, default=Flaw.NONE, choices=list(Flaw))
    arguments = parser.parse_args()
    if arguments.command in {"score", "predict"}:
        first, _, last = arguments.seeds.partition("-")
        seeds = list(range(int(first), int(last or first) + 1))
    if arguments.command == "predict":
        captures = [captures_of(seed, clean=arguments.clean, every=False) for seed in seeds]
        with ProcessPoolExecutor(arguments.jobs) as pool:
            checks = [check for found in pool.map(check_seed, seeds, captures) for check in found]
        print(*(describe(check) for check in checks if not check.is_inside), sep="\n", end="\n\n")
        print(summarize(checks))
    elif arguments.command == "score":
        _score(seeds, clean=arguments.clean, every=arguments.every_format, jobs=arguments.jobs)
    elif arguments.command == "show":
        _show(arguments.seed, arguments.flaw, [arguments.format] if arguments.format else list(Format))
    else:
        truth = find_truth(draw_world(arguments.seed))
        for format_ in Format:
            folder = arguments.folder / format_
            folder.mkdir(parents=True, exist_ok=True)
            write_capture(truth.record, Capture(format_, arguments.flaw), arguments.seed, folder)
    return 0


def captures_of(seed: int, *, clean: bool, every: bool) -> list[Capture]:
    """Return the captures of a world to score."""
    drawn = draw_capture(seed)
    flaw = Flaw.NONE if clean else drawn.flaw
    return [Capture(format_, flaw, drawn.age) for format_ in (Format if every else (drawn.format,))]


def _score(seeds: list[int], *, clean: bool, every: bool, jobs: int) -> None:
    """Score all worlds and print the tables. Failures are written as they are found."""
    captures = [captures_of(seed, clean=clean, every=every) for seed in seeds]
    scores: list[Scored] = []
    FAILURES.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs) as pool, FAILURES.open("w", encoding="utf-8", buffering=1) as failures:
        for result in pool.map(score_seed, seeds, captures):
            scores += result
            failures.writelines(f"{_describe(scored)}\n" for scored in result if scored.grade not in GOOD)
            print(f"\r{summary(scores)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(table(scores, lambda scored: scored.cause, "cause"), end="\n\n")
    print(table(scores, lambda scored: scored.capture.format, "format"), end="\n\n")
    print(table(scores, lambda scored: scored.capture.flaw, "flaw"), end="\n\n")
    print(cross_table(scores), end="\n\n")
    print(f"Failures are in {FAILURES}.")
    print(summary(scores))


def _describe(scored: Scored) -> str:
    return (
        f"seed {scored.seed} {scored.capture} [{scored.grade}] true: {scored.gains or 'healthy'}; "
        f"lead: {scored.lead or 'none'}\n    {scored.sentence}"
    )


def _show(seed: int, flaw: Flaw, formats: list[Format]) -> None:
    truth = find_truth(draw_world(seed))
    print(truth.world)
    print("gains:", {knob.value: round(gain, 3) for knob, gain in truth.gains.items()})
    print("hiding:", [sorted(pair) for pair in truth.hiding])
    for format_ in formats:
        print(_describe(score_capture(truth, Capture(format_, flaw))))


if __name__ == "__main__":
    sys.exit(main())
