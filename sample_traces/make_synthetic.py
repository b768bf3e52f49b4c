"""Make the synthetic sample traces, or check that the committed ones are what this program makes.

    python sample_traces/make_synthetic.py            write synthetic/*.sqlite and their part of MANIFEST.toml
    python sample_traces/make_synthetic.py --check    compare row by row; exit code 1 where they differ

Nothing in these databases was recorded: ``stories.py`` says what each tells, ``program.py`` simulates the program,
``nsys_database.py`` writes the form of an Nsight Systems export. The rows depend on nothing but this code (a fixed
seed varies durations by 3 %); the bytes of a file may depend on the version of SQLite.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import sys
import tempfile
import tomllib
from pathlib import Path

from nsys_database import SCHEMA_VERSION
from stories import STORIES, Story

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "synthetic"
MANIFEST = HERE / "MANIFEST.toml"
BEGIN, END = "# begin: written by make_synthetic.py", "# end: written by make_synthetic.py"

Contents = dict[str, list[tuple[object, ...]]]


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
        story.database().save(path_of(story))
        print(f"{path_of(story).relative_to(HERE)}  {path_of(story).stat().st_size:,} bytes")
    write_manifest()
    return 0


def check() -> list[str]:
    """What differs between the committed files and a fresh run, one sentence each."""
    problems = []
    listed = {entry["file"]: entry for entry in tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["trace"]}
    for story in STORIES:
        path = path_of(story)
        name = str(path.relative_to(HERE))
        with tempfile.TemporaryDirectory() as folder:
            fresh = Path(folder, path.name)
            story.database().save(fresh)
            if not path.exists() or contents(path) != contents(fresh):
                problems.append(f"{name} does not hold what the generator makes: run make_synthetic.py")
        if path.exists() and listed.get(name, {}).get("sha256") != sha256(path):
            problems.append(f"{name} is not the file that MANIFEST.toml lists")
    return problems


def contents(path: Path) -> Contents:
    """Every table with its definition and rows, in order."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    found: Contents = {"sqlite_master": tables}
    for name, _ in tables:
        found[name] = connection.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall()
    connection.close()
    return found


def path_of(story: Story) -> Path:
    """Where the database of ``story`` is kept."""
    return FOLDER / f"{story.name}.sqlite"


def sha256(path: Path) -> str:
    """Checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_manifest() -> None:
    """Replace this program's part of the manifest, and leave the rest as it is."""
    text = MANIFEST.read_text(encoding="utf-8") if MANIFEST.exists() else f"{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    entries = "\n".join(entry_of(story) for story in STORIES)
    MANIFEST.write_text(f"{before}{BEGIN}\n\n{entries}\n{END}{after}", encoding="utf-8")


def entry_of(story: Story) -> str:
    """The manifest's entry of one story."""
    path = path_of(story)
    rows = {name: len(rows) for name, rows in contents(path).items() if name != "sqlite_master"}
    facts = {
        "file": str(path.relative_to(HERE)),
        "synthetic": True,
        "story": story.tells,
        "made_by": "python sample_traces/make_synthetic.py",
        "schema": SCHEMA_VERSION,
        "accepted_by": "nsys 2022.4.2",
        "sha256": sha256(path),
        "bytes": path.stat().st_size,
        "verdict": story.expected.verdict,
        "findings": list(story.expected.findings),
        "steps": story.expected.steps,
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    counts = ", ".join(f"{name} = {count}" for name, count in rows.items() if not name.startswith("ENUM"))
    return "\n".join(["[[trace]]", *lines, f"rows = {{ {counts} }}", ""])


if __name__ == "__main__":
    sys.exit(main())
