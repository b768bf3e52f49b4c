"""Make the synthetic PyTorch captures, or check that the committed ones are what this program makes.

    python sample_traces/make_synthetic_kineto.py            write synthetic/*.pt.trace.json.gz and their manifest
    python sample_traces/make_synthetic_kineto.py --check    compare what they hold; exit code 1 where it differs

Nothing in them was recorded: they have a GPU, which the recorded captures of ``kineto/`` lack. ``kineto_stories.py``
says what each tells, ``kineto_program.py`` simulates the program, ``kineto_trace.py`` writes the file format.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from pathlib import Path

from kineto_program import TorchProgram
from kineto_stories import STORIES, Story

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "synthetic"
MANIFEST = HERE / "MANIFEST.toml"
BEGIN, END = "# begin: written by make_synthetic_kineto.py", "# end: written by make_synthetic_kineto.py"


def main() -> int:
    """Run the command line; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed files and write nothing")
    if parser.parse_args().check:
        problems = check()
        print("\n".join(problems) or f"{len(STORIES)} stories hold what the generator makes")
        return 1 if problems else 0
    for story in STORIES:
        for path, program in files_of(story):
            write(path, program)
    write_manifest()
    return 0


def write(path: Path, program: TorchProgram) -> None:
    """Write a capture, unless the file holds it already: what gzip makes of the same text differs between versions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = program.trace.encoded()
    if not path.exists() or gzip.decompress(path.read_bytes()) != text:
        path.write_bytes(gzip.compress(text, mtime=0))
    print(f"{path.relative_to(HERE)}  {path.stat().st_size:,} bytes")


def check() -> list[str]:
    """What differs between the committed files and a fresh run, one sentence each."""
    problems = []
    for path, program in (pair for story in STORIES for pair in files_of(story)):
        if not path.exists() or gzip.decompress(path.read_bytes()) != program.trace.encoded():
            problems.append(
                f"{path.relative_to(HERE)} does not hold what the generator makes: run {Path(__file__).name}"
            )
    if not problems and part_of_manifest() not in MANIFEST.read_text(encoding="utf-8"):
        problems.append(f"MANIFEST.toml does not list what the generator makes: run {Path(__file__).name}")
    return problems


def files_of(story: Story) -> list[tuple[Path, TorchProgram]]:
    """Where the captures of ``story`` are kept: one file, or a folder with one per rank."""
    programs = story.train()
    if len(programs) == 1:
        return [(FOLDER / f"{story.name}.pt.trace.json.gz", programs[0])]
    return [(FOLDER / story.name / f"rank{place}.pt.trace.json.gz", one) for place, one in enumerate(programs)]


def write_manifest() -> None:
    """Replace this program's part of the manifest, and leave the rest as it is."""
    text = MANIFEST.read_text(encoding="utf-8")
    if BEGIN not in text:
        text = f"{text}\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    MANIFEST.write_text(f"{before}{part_of_manifest()}{after}", encoding="utf-8")


def part_of_manifest() -> str:
    """The manifest's entries of all files, between their marks."""
    entries = "\n".join(entry_of(story, *pair) for story in STORIES for pair in files_of(story))
    return f"{BEGIN}\n\n{entries}\n{END}"


def entry_of(story: Story, path: Path, program: TorchProgram) -> str:
    """The manifest's entry of one file; several ranks are reported on as one folder."""
    data = path.read_bytes()
    facts = {
        "file": str(path.relative_to(HERE)),
        **({"folder": str(path.parent.relative_to(HERE))} if program.world_size > 1 else {}),
        "synthetic": True,
        "story": story.tells,
        "made_by": "python sample_traces/make_synthetic_kineto.py",
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "verdict": story.expected.verdict,
        "findings": list(story.expected.findings),
        "steps": story.expected.steps,
        "events": len(json.loads(gzip.decompress(data))["traceEvents"]),
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(["[[trace]]", *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
