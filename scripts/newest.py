"""Print what this project and its tests depend on, one requirement per line, without upper bounds.

    python scripts/newest.py

`make test-newest` installs the newest of these. Exact versions stay: pyproject.toml gives their reasons.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def newest(project: Mapping[str, Any]) -> list[str]:
    """Return the requirements of a project, its build and its tests, without their upper bounds."""
    groups = project["dependency-groups"]
    return [
        without_upper_bounds(text) for text in (*project["project"]["dependencies"], *groups["build"], *groups["dev"])
    ]


def without_upper_bounds(text: str) -> str:
    """Return the requirement with its marker, and without its upper bounds."""
    requirement = Requirement(text)
    kept = [bound for bound in requirement.specifier if bound.operator not in {"<", "<="}]
    requirement.specifier = SpecifierSet(",".join(map(str, kept)))
    return str(requirement)


def main() -> None:
    """Run the command line."""
    print("\n".join(newest(tomllib.loads(PROJECT.read_text(encoding="utf-8")))))


if __name__ == "__main__":
    main()
