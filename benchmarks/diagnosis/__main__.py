"""Commands: score worlds, make tables of scores, show a world, write its captures."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.diagnosis.captures import Capture, formats_of, write_capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.knobs import Format
from benchmarks.diagnosis.predictions import check_seed, describe_check, summarize
from benchmarks.diagnosis.score import GOOD, Scored, captures_of, draw_capture, score_capture, score_seeds
from benchmarks.diagnosis.scoring.failures import (
    clear_failures,
    describe,
    describe_all,
    write_failure,
    write_shortest,
)
from benchmarks.diagnosis.scoring.tables import fill_page, make_tables, summary
from benchmarks.diagnosis.truth import find_truth
from benchmarks.diagnosis.worlds import draw_world, parse_seeds

RESULTS = Path("build/diagnosis")
SCORES, FAILURES = "scores.jsonl", "failures.txt"
PAGE = Path("docs/diagnosis.md")
COMPARE_EVERY = 4
"""Worlds that are compared: every fourth."""
KEPT = 20


def main(arguments: list[str] | None = None) -> int:
    """Run a command."""
    # Each process scores a world of its own: threads would only wait for cores.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    options = _parse(arguments)
    if options.command == "score" and options.seed is not None:
        _score_one(options)
    elif options.command == "score":
        _score(options)
    elif options.command == "predict":
        _predict(options)
    elif options.command == "table":
        lines = options.results.read_text(encoding="utf-8").splitlines()
        _print_tables([Scored.from_json(line) for line in lines], options.markdown)
    elif options.command == "show":
        _show(options.seed, options.flaw, [options.format] if options.format else list(Format))
    else:
        truth = find_truth(draw_world(options.seed))
        for format_ in formats_of(truth.world):
            folder = options.folder / format_
            folder.mkdir(parents=True, exist_ok=True)
            write_capture(truth.record, Capture(format_, options.flaw), options.seed, folder)
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    score = commands.add_parser("score", help="score reports on many worlds, or all about one")
    score.add_argument("--seeds", default="1-200", help="first and last seed")
    score.add_argument("--seed", type=int, help="one world: everything that is scored, and its capture as files")
    score.add_argument("--format", type=Format, choices=list(Format), help="with --seed: not the drawn format")
    score.add_argument("--flaw", type=Flaw, choices=list(Flaw), help="with --seed: not the drawn flaw")
    score.add_argument("--clean", action="store_true", help="captures without flaws only")
    score.add_argument("--every-format", action="store_true", help="all formats of each world, not one")
    score.add_argument(
        "--compare-every", type=int, default=COMPARE_EVERY, help="compare every Nth world (0 for none; it is slow)"
    )
    score.add_argument("--keep", type=int, default=KEPT, help="most failures to write as files")
    score.add_argument("--shrink", action="store_true", help="also write the shortest world that still fails")
    score.add_argument("--results", type=Path, default=RESULTS, help="folder for scores and failures")
    score.add_argument("--jobs", type=int, default=1, help="processes")
    predict = commands.add_parser("predict", help="check predicted step times against runs without the cause")
    predict.add_argument("--seeds", default="1-200", help="first and last seed")
    predict.add_argument("--clean", action="store_true", help="captures without flaws only")
    predict.add_argument("--jobs", type=int, default=1, help="processes")
    table = commands.add_parser("table", help="make the tables of scores again")
    table.add_argument("results", type=Path, nargs="?", default=RESULTS / SCORES, help="lines of JSON of a run")
    for command in (score, table):
        command.add_argument("--markdown", type=Path, nargs="?", const=PAGE, help=f"page that gets the tables ({PAGE})")
    show = commands.add_parser("show", help="show the truth of a world, and the reports on its captures")
    write = commands.add_parser("write", help="write the captures of a world as files")
    write.add_argument("folder", type=Path)
    show.add_argument("--format", type=Format, choices=list(Format), help="one format, not all")
    for command in (show, write):
        command.add_argument("--seed", type=int, required=True)
        command.add_argument("--flaw", type=Flaw, default=Flaw.NONE, choices=list(Flaw))
    return parser.parse_args(arguments)


def _predict(options: argparse.Namespace) -> None:
    """Check the predictions for all worlds. Print those that are wrong, and a summary."""
    seeds = parse_seeds(options.seeds)
    captures = [captures_of(seed, clean=options.clean, every=False) for seed in seeds]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        checks = [check for found in pool.map(check_seed, seeds, captures) for check in found]
    print(*(describe_check(check) for check in checks if not check.is_inside), sep="\n", end="\n\n")
    print(summarize(checks))


def _score(options: argparse.Namespace) -> None:
    """Score all worlds and print the tables. Scores and failures are written as they are found."""
    seeds = parse_seeds(options.seeds)
    results: Path = options.results
    results.mkdir(parents=True, exist_ok=True)
    clear_failures(results)
    scores: list[Scored] = []
    with (
        (results / SCORES).open("w", encoding="utf-8", buffering=1) as lines,
        (results / FAILURES).open("w", encoding="utf-8", buffering=1) as failures,
    ):
        worlds = score_seeds(
            seeds,
            clean=options.clean,
            every=options.every_format,
            compare_every=options.compare_every,
            jobs=options.jobs,
        )
        for result in worlds:
            scores += result
            lines.writelines(f"{scored.to_json()}\n" for scored in result)
            failures.writelines(f"{describe(scored)}\n" for scored in result if scored.grade not in GOOD)
            print(f"\r{summary(scores)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    failed = [scored for scored in scores if scored.grade not in GOOD]
    for scored in failed[: options.keep]:
        _write_files(scored.seed, scored.capture, results, shrinks=options.shrink)
    print(
        f"All failures are in {results / FAILURES}; files of the first {len(failed[: options.keep])} are next to it.\n"
    )
    _print_tables(scores, options.markdown)


def _print_tables(scores: list[Scored], page: Path | None) -> None:
    """Print the tables, with the summary as the last line, and fill a page with them."""
    for table in make_tables(scores):
        print(table.to_text(), end="\n\n")
    if page is not None:
        fill_page(page, scores)
    print(summary(scores))


def _score_one(options: argparse.Namespace) -> None:
    """Print everything that is scored of a world, and write its capture, report and truth as files."""
    drawn = draw_capture(options.seed)
    capture = Capture(options.format or drawn.format, options.flaw or drawn.flaw, drawn.age)
    truth = find_truth(draw_world(options.seed))
    print(truth.world)
    print(describe_all(score_capture(truth, capture, places=True, compares=True)))
    _write_files(options.seed, capture, options.results, shrinks=options.shrink)


def _write_files(seed: int, capture: Capture, results: Path, *, shrinks: bool) -> None:
    truth = find_truth(draw_world(seed))
    folder = write_failure(truth, capture, results)
    print(f"Files: {folder}")
    if shrinks and score_capture(truth, capture).grade not in GOOD:
        print(f"Shortest: {describe(write_shortest(truth, capture, folder))}")


def _show(seed: int, flaw: Flaw, formats: list[Format]) -> None:
    truth = find_truth(draw_world(seed))
    print(truth.world)
    print("gains:", {knob.value: round(gain, 3) for knob, gain in truth.gains.items()})
    print("hiding:", [sorted(pair) for pair in truth.hiding])
    for format_ in formats:
        print(describe(score_capture(truth, Capture(format_, flaw))))


if __name__ == "__main__":
    sys.exit(main())
