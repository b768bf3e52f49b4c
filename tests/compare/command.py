"""``traceviz compare`` as a user runs it, with its document in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from traceviz.cli.main import main

_ENDS = frozenset({"low_ratio", "high_ratio", "low_ns", "high_ns"})
"""Ends of intervals: of a difference, and not differences."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Exit code, JSON document and stderr of a comparison."""

    code: int
    document: Mapping[str, Any]
    stderr: str

    @property
    def outcome(self) -> str:
        return str(self.document["verdict"]["code"])

    @property
    def sentence(self) -> str:
        return str(self.document["verdict"]["sentence"])

    def section(self, slug: str) -> Mapping[str, Any]:
        return next(section for section in self.document["sections"] if section["slug"] == slug)

    def facts(self, slug: str) -> dict[str, Any]:
        return {fact["key"]: fact["value"] for block in self.section(slug)["blocks"] for fact in block.get("facts", ())}

    def rows(self, slug: str) -> list[dict[str, Any]]:
        """Return rows of the first table of a section."""
        return next(block["rows"] for block in self.section(slug)["blocks"] if "rows" in block)

    def classes(self) -> dict[str, dict[str, Any]]:
        """Return classes of step time by key."""
        return {row["class"]: row for row in self.rows("attribution")}

    def changes(self) -> dict[str, list[float]]:
        """Return every measured change in every table by section; tables of sides without a row of the base."""
        changes: dict[str, list[float]] = {}
        for section in self.document["sections"]:
            for block in section["blocks"]:
                signed = [column["name"] for column in block.get("columns", ()) if column.get("signed")]
                values = [row[name] for row in block.get("rows", ()) for name in signed if name not in _ENDS]
                changes.setdefault(section["slug"], []).extend(value for value in values if value is not None)
        return {slug: values for slug, values in changes.items() if values}

    def not_as_before(self) -> dict[str, list[Any]]:
        """Return differences of the sides by section: changes, and findings that are new, gone or weigh otherwise."""
        differing: dict[str, list[Any]] = {
            slug: [value for value in values if value] for slug, values in self.changes().items()
        }
        differing["findings"] = [
            row
            for row in self.rows("findings")
            if (row["seen"], row["base_share"], row["base_ns"]) != ("stayed", row["new_share"], row["new_ns"])
        ]
        return {slug: values for slug, values in differing.items() if values}


def compared(*arguments: object) -> CommandResult:
    """Compare, with JSON as the format."""
    result = CliRunner().invoke(main, ["compare", *map(str, arguments), "--format", "json"])
    assert result.stdout, result.stderr
    return CommandResult(result.exit_code, json.loads(result.stdout), result.stderr)


def refused(*arguments: object) -> tuple[int, str]:
    """Return the exit code and message of a comparison that prints nothing."""
    result = CliRunner().invoke(main, ["compare", *map(str, arguments)])
    assert result.stdout == ""
    return result.exit_code, result.stderr


def share_of_difference(result: CommandResult, *classes: str) -> float:
    """Return the part of the difference of the mean step that lies in ``classes``."""
    differences = [result.classes()[key]["difference_ns"] for key in classes]
    return float(sum(differences) / result.facts("attribution")["difference_ns"])


def path_of(folder: Path, name: str) -> Path:
    """Return a file of a folder, which must be there."""
    (path,) = folder.glob(name)
    return path
