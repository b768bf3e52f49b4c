"""Databases whose pages the fuzzer of the C code spoils: integers, nulls, texts, rows longer than a page."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

_SIZES = (512, 1024, 4096, 65536)


def databases(folder: Path) -> dict[str, bytes]:
    """Return their content, by name; they are made in ``folder``."""
    return {f"pages-{size}": _database(folder / "made.sqlite", size) for size in _SIZES}


def _database(path: Path, page_size: int) -> bytes:
    random = Random(page_size)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(
            "CREATE TABLE x (start INTEGER, end INTEGER, key INTEGER, value INTEGER, text TEXT, more TEXT)"
        )
        rows = [_row(random, number, page_size) for number in range(300)]
        connection.executemany("INSERT INTO x VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
    content = path.read_bytes()
    path.unlink()
    return content


def _row(random: Random, number: int, page_size: int) -> tuple[int | str | None, ...]:
    value = random.choice((None, 0, 1, random.getrandbits(random.choice((7, 15, 31, 47, 63)))))
    text = random.choice((None, "", "forward", "x" * random.randrange(200)))
    more = "y" * (page_size if random.random() < 0.02 else 0)
    return number, number + random.randrange(-3, 9), random.randrange(4), value, text, more
