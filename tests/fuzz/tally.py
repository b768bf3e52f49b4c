"""Results of many cases: counts by format and outcome, and faults, each kept once."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_KEPT_CASES = 20


@dataclass
class Found:
    """A fault, by its kind and place; ``cases`` are the first that showed it."""

    kind: str
    what: str
    place: str
    detail: str
    formats: set[str] = field(default_factory=set)
    count: int = 0
    cases: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """One line."""
        return " ".join(part for part in (f"{self.kind}: {self.what}", f"({self.place})" if self.place else "") if part)


@dataclass
class Tally:
    """Counts and faults of a run."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    found: dict[tuple[str, str, str], Found] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        """Number of cases."""
        return sum(sum(counts.values()) for counts in self.counts.values())

    def add(self, format_name: str, outcome: str) -> None:
        """Count one case that came out as it should."""
        self.counts.setdefault(format_name, Counter())[outcome] += 1

    def add_fault(self, format_name: str, command: str, fault: dict[str, str]) -> Found | None:
        """Count one case with a fault; return the fault if it is the first of its kind."""
        self.add(format_name, f"fault: {fault['kind']}")
        key = fault["kind"], fault["what"], fault["place"]
        is_new = key not in self.found
        found = self.found.setdefault(key, Found(*key, fault["detail"]))
        found.count += 1
        found.formats.add(format_name)
        if len(found.cases) < _KEPT_CASES:
            found.cases.append(command)
        return found if is_new else None

    def as_json(self) -> dict[str, Any]:
        """Return all of it."""
        return {
            "cases": self.cases,
            "seconds": round(self.seconds, 1),
            "counts": {name: dict(counts.most_common()) for name, counts in sorted(self.counts.items())},
            "faults": [
                {
                    "kind": found.kind,
                    "what": found.what,
                    "place": found.place,
                    "count": found.count,
                    "formats": sorted(found.formats),
                    "cases": found.cases,
                    "detail": found.detail,
                }
                for found in sorted(self.found.values(), key=lambda found: -found.count)
            ],
        }

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.as_json(), indent=1, ensure_ascii=True)
        new = path.with_suffix(".new")
        new.write_text(f"{text}\n", encoding="utf-8")
        new.replace(path)


def added_up(documents: Iterable[dict[str, Any]]) -> Tally:
    """Return the tallies of several runs together, from their JSON."""
    tally = Tally()
    for document in documents:
        tally.seconds += document["seconds"]
        for name, counts in document["counts"].items():
            tally.counts.setdefault(name, Counter()).update(counts)
        for fault in document["faults"]:
            key = fault["kind"], fault["what"], fault["place"]
            found = tally.found.setdefault(key, Found(*key, fault["detail"]))
            found.count += fault["count"]
            found.formats.update(fault["formats"])
            found.cases = (found.cases + fault["cases"])[:_KEPT_CASES]
    return tally


def table(tally: Tally) -> str:
    """Return formats in rows, outcomes in columns; errors of ours by class; then the faults."""
    outcomes = Counter[str]()
    for counts in tally.counts.values():
        outcomes.update(counts)
    names = [name for name, _ in outcomes.most_common()]
    width = max([len(name) for name in tally.counts] + [6])
    head = f"{'':{width}} {'cases':>9} " + " ".join(f"{name:>{max(len(name), 7)}}" for name in names)
    lines = [head]
    rows = [*sorted(tally.counts.items()), ("all", outcomes)]
    for name, counts in rows:
        cells = " ".join(f"{counts[each] or '':>{max(len(each), 7)}}" for each in names)
        lines.append(f"{name:{width}} {sum(counts.values()):>9,} {cells}")
    per_second = tally.cases / tally.seconds if tally.seconds else 0
    lines.append(
        f"{tally.cases:,} cases in {tally.seconds:,.0f} s ({per_second:,.1f} a second), {len(tally.found)} faults"
    )
    for found in sorted(tally.found.values(), key=lambda found: -found.count):
        lines += ["", f"{found.count:>6} × {found.title}", f"         {', '.join(sorted(found.formats))}"]
        lines += [f"         {command}" for command in found.cases[:2]]
    return "\n".join(lines)


def keep(found: Found, made: Path | None, folder: Path) -> None:
    """Write what is known of a fault, and its input, into a folder of its own."""
    name = "".join(letter if letter.isalnum() else "-" for letter in found.title)[:100].strip("-")
    home = folder / name
    home.mkdir(parents=True, exist_ok=True)
    (home / "fault.txt").write_text(
        f"{found.title}\n\n{chr(10).join(found.cases)}\n\n{found.detail}\n", encoding="utf-8", errors="backslashreplace"
    )
    if made is not None and made.exists():
        target = home / made.name
        if made.is_dir():
            shutil.copytree(made, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copyfile(made, target)
