"""CSV output of nvprof: every column of the first table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.extremes.values import ABSENT, Place, Sample, in_utf8


class CsvSample(Sample):
    """A printed table.

    Args:
        path: Where it lies.
        rows: How many rows are kept.
    """

    def __init__(self, path: Path, rows: int) -> None:
        lines = path.read_text(encoding="utf-8").splitlines()
        self._name = path.name
        head = next(number for number, line in enumerate(lines) if line.startswith('"'))
        self._before = lines[:head]
        self._cells = [line.split(",") for line in lines[head : head + 2 + rows]]
        self._labels = [label.strip('"') for label in self._cells[0]]

    def places(self) -> list[Place]:
        return [(row, label) for label in self._labels for row in ("label", "unit", "first", "second")]

    def write(self, place: Place, value: Any, folder: Path) -> Path:
        row, label = place
        at, cells = self._labels.index(label), [list(line) for line in self._cells]
        if value is ABSENT:
            for line in cells:
                del line[at : at + 1]
        else:
            changed = cells[("label", "unit", "first", "second").index(row)]
            changed[at : at + 1] = ["" if value is None else str(value)]
        path = folder / self._name
        text = "\n".join([*self._before, *(",".join(line) for line in cells), ""])
        path.write_bytes(in_utf8(text))
        return path
