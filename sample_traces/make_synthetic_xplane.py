"""Make the synthetic XPlane captures, or check that the committed ones are what this program makes.

    python sample_traces/make_synthetic_xplane.py            write synthetic/*.xplane.pb and their part of MANIFEST.toml
    python sample_traces/make_synthetic_xplane.py --check    compare the bytes; exit code 1 where they differ

Nothing in them was recorded: they have device planes, which the recorded captures of ``xplane/`` lack.
``xplane_stories.py`` says what each tells, ``xplane_program.py`` simulates the program, ``xplane_space.py`` writes the
file format.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

from xplane_space import Space
from xplane_stories import STORIES, Story

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "synthetic"
MANIFEST = HERE / "MANIFEST.toml"
BEGIN, END = "# begin: written by make_synthetic_xplane.py", "# end: written by make_synthetic_xplane.py"


def main() -> int:
    """Run the command line; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed files and write nothing")
    if parser.parse_args().check:
        problems = check()
        print("\n".join(problems) or f"{len(STORIES)} files hold what the generator makes")
        return 1 if problems else 0
    FOLDER.mkdir(exist_ok=True)
    for story in STORIES:
        path_of(story).write_bytes(story.space().encoded())
        print(f"{path_of(story).relative_to(HERE)}  {path_of(story).stat().st_size:,} bytes")
    write_manifest()
    return 0


def check() -> list[str]:
    """What differs between the committed files and a fresh run, one sentence each."""
    problems = []
    for story in STORIES:
        path = path_of(story)
        if not path.exists() or path.read_bytes() != story.space().encoded():
            problems.append(
                f"{path.relative_to(HERE)} does not hold what the generator makes: run {Path(__file__).name}"
            )
    if part_of_manifest() not in MANIFEST.read_text(encoding="utf-8"):
        problems.append(f"MANIFEST.toml does not list what the generator makes: run {Path(__file__).name}")
    return problems


def path_of(story: Story) -> Path:
    """Where the capture of ``story`` is kept."""
    return FOLDER / f"{story.name}.xplane.pb"


def write_manifest() -> None:
    """Replace this program's part of the manifest, and leave the rest as it is."""
    text = MANIFEST.read_text(encoding="utf-8")
    if BEGIN not in text:
        text = f"{text}\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    MANIFEST.write_text(f"{before}{part_of_manifest()}{after}", encoding="utf-8")


def part_of_manifest() -> str:
    """The manifest's entries of all stories, between their marks."""
    entries = "\n".join(entry_of(story) for story in STORIES)
    return f"{BEGIN}\n\n{entries}\n{END}"


def entry_of(story: Story) -> str:
    """The manifest's entry of one story."""
    space = story.space()
    data = space.encoded()
    facts = {
        "file": str(path_of(story).relative_to(HERE)),
        "synthetic": True,
        "story": story.tells,
        "made_by": "python sample_traces/make_synthetic_xplane.py",
        "accepted_by": "xprof 2.24.2",
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "verdict": story.expected.verdict,
        "findings": list(story.expected.findings),
        "steps": story.expected.steps,
        **counts(space),
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(["[[trace]]", *lines, ""])


def counts(space: Space) -> dict[str, int]:
    """How many events the capture holds, and how many stats these have."""
    events = [event for plane in space.planes for line in plane.lines for event in line.events]
    return {"events": len(events), "stats": sum(len(stats) for *_, stats in events)}


if __name__ == "__main__":
    sys.exit(main())
