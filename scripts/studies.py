"""Record the five studies of examples/studies, and put what they show into docs/studies.md.

    make studies                                    both
    python scripts/studies.py record 1_keras        one of them; existing runs are kept
    python scripts/studies.py all --minutes 18      no round of a study starts later than that
    python scripts/studies.py fill                  the page alone

All studies get their first repeat before one gets its second. Every ``$ traceviz compare traceviz-runs/...`` of the
page runs again, and its output is put below it. The table between the markers ``<!-- runs -->`` shows the cost of
recording.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "examples" / "studies").glob("*.toml"))
STUDIES = tuple(file.stem for file in FILES)
RUNS = ROOT / "traceviz-runs"
PAGE = ROOT / "docs" / "studies.md"
TRACEVIZ = ROOT / ".venv" / "bin" / "traceviz"
IMAGES = ROOT / "build" / "images"
TIMES = ROOT / "build" / "studies.json"
"""File that maps each study to its recording time in seconds, over all calls of this program."""

COMMAND = re.compile(r"^\$ (traceviz compare (?:.*\\\n)*.*)\n", re.MULTILINE)
"""A command of the page, with the lines that continue it."""
TABLE = re.compile(r"(<!-- runs -->\n).*?(<!-- /runs -->)", re.DOTALL)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=["all", "record", "fill"], default="all")
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"all, or some of {', '.join(STUDIES)}")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no round of a study later than that")
    options = parser.parse_intermixed_args()
    if not set(STUDIES).issuperset(options.studies):
        parser.error(f"studies are {', '.join(STUDIES)}")
    if options.what != "fill":
        chosen = [file for file in FILES if not options.studies or file.stem in options.studies]
        record_all(chosen, time.monotonic() + 60 * options.minutes)
    if options.what != "record":
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)} has what the runs show")


def record_all(files: Sequence[Path], until: float) -> None:
    """Record the rounds of all studies in turn."""
    repeats = {file: tomllib.loads(file.read_text(encoding="utf-8"))["repeats"] for file in files}
    for number in range(1, max(repeats.values()) + 1):
        for file in files:
            if number > repeats[file]:
                continue
            if time.monotonic() > until:
                print(f"{file.stem}: no time is left for round {number}")
                continue
            record(file, number)


def record(file: Path, repeats: int) -> None:
    """Make the missing runs of a study, and add up how long that takes."""
    begun = time.monotonic()
    words = [TRACEVIZ, "sweep", file, "--repeats", str(repeats), "--no-table"]
    done = subprocess.run(words, cwd=ROOT, env=variables(), check=False)
    times = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    times[file.stem] = times.get(file.stem, 0) + round(time.monotonic() - begun)
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps(times))
    if done.returncode:
        sys.exit(f"{file.stem} was not recorded whole (exit code {done.returncode}): the same command goes on with it")


def variables() -> dict[str, str]:
    """Return the environment of the programs: TensorFlow's Python first, traceviz, and the package with the images."""
    folders = [ROOT / ".venv-oracle" / "bin", ROOT / ".venv" / "bin"]
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    # This machine offers no GPU, and TensorFlow would print many lines about that.
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "COLUMNS": "100"}
    return {**os.environ, "PATH": path, "PYTHONPATH": str(IMAGES), **quiet}


def filled(page: str) -> str:
    """Return the page with the current output of its commands."""
    page = TABLE.sub(lambda found: f"{found[1]}{table_of_runs()}{found[2]}", page)
    parts, at = [], 0
    for found in COMMAND.finditer(page):
        if not is_recorded(found[1]):
            print(f"not recorded yet: {found[1]}")
            continue
        end = next_of(page, found.end())
        parts += [page[at : found.end()], printed(found[1])]
        at = end
    return "".join([*parts, page[at:]])


def is_recorded(command: str) -> bool:
    """Return whether there are runs of all studies that a command of the page names."""
    return all(any(RUNS.glob(f"{name}/*/manifest.json")) for name in re.findall(r"traceviz-runs/(\w+)", command))


def next_of(page: str, place: int) -> int:
    """Return the end of the output that starts at ``place``: the next command, or the end of its block."""
    starts = (page.find(f"\n{mark}", place - 1) + 1 for mark in ("$ ", "```"))
    return min(start for start in starts if start)


def printed(command: str) -> str:
    """Return the output of a command of the page."""
    print(f"$ {command}", flush=True)
    done = subprocess.run(
        ["/bin/bash", "-c", command], cwd=ROOT, env=variables(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout}{done.stderr}")
    return f"{done.stdout.rstrip()}\n"


def table_of_runs() -> str:
    """Return the table of studies: settings, runs, finished runs, minutes."""
    times: dict[str, int] = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    lines = ["| study | settings | runs | finished | minutes |", "|---|---|---|---|---|"]
    for file in FILES:
        manifests = [json.loads(path.read_text()) for path in sorted(RUNS.glob(f"{file.stem}/*/manifest.json"))]
        settings = {tuple(sorted(tags_of(manifest).items())) for manifest in manifests}
        finished = sum(manifest.get("status") == "finished" for manifest in manifests)
        minutes = f"{times.get(file.stem, 0) / 60:.1f}"
        lines.append(f"| `{file.name}` | {len(settings)} | {len(manifests)} | {finished} | {minutes} |")
    return "\n".join(lines) + "\n"


def tags_of(manifest: dict[str, Any]) -> dict[str, str]:
    """Return the tags of a run, without the number of its repeat."""
    return {tag: value for tag, value in manifest.get("tags", {}).items() if tag != "repeat"}


if __name__ == "__main__":
    main()
