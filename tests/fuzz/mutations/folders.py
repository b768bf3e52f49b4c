"""Changes of folders: of one of their files, by its kind; of the list of files."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

from tests.fuzz.cases import Step
from tests.fuzz.mutations import json_text, nasty, parquet_cells, sqlite_logic
from tests.fuzz.mutations.octets import SPOIL, in_file, spoil


def files(folder: Path, *suffixes: str) -> list[Path]:
    """Return files in a folder at any depth, of these endings, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(suffixes or ("",)))


def in_one(step: Step, *suffixes: str) -> Step:
    """Return ``step`` on one file of a folder, of these endings."""

    def in_folder(random: Random, folder: Path) -> None:
        found = files(folder, *suffixes)
        if found:
            step(random, random.choice(found))

    return in_folder


JSON = in_one(in_file(json_text.change), ".json", ".jsonl")
CELLS = in_one(parquet_cells.change, ".parquet")
FOOTER = in_one(parquet_cells.spoil_footer, ".parquet")
BYTES = in_one(SPOIL)
ROWS = in_one(sqlite_logic.change, ".sqlite")


def rearrange(random: Random, folder: Path) -> None:
    """Lose, empty, repeat, exchange or rename one file, or put a folder or a link in its place."""
    found = files(folder)
    if not found:
        return
    path, other = random.choice(found), random.choice(found)
    match random.randrange(9):
        case 0 | 1:
            path.unlink()
        case 2:
            path.write_bytes(b"")
        case 3:
            path.write_bytes(other.read_bytes())
        case 4:
            name = nasty.text(random).replace("/", "").replace("\0", "")[:60] or "x"
            shutil.copyfile(path, path.with_name(f"{name}{path.suffix}"))
        case 5:
            path.rename(path.with_name(path.name.upper()))
        case 6:
            path.unlink()
            path.mkdir()
        case 7:
            path.unlink()
            path.symlink_to(random.choice((path.name, "nowhere", "/proc/self/nothing", other.name)))
        case _:
            path.write_bytes(spoil(random, other.read_bytes()))
