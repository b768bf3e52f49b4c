"""Print what this project and its tests depend on, one requirement per line, without upper bounds.

    python scripts/newest.py

`make test-newest` installs the newest of these. Exact versions stay: pyproject.toml gives their reasons.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
_UPPER_BOUND = re.compile(r",?\s*<=?\s*[\w.]+")


def newest(project: Mapping[str, Any]) -> list[str]:
    """The requirements of a project, its build and its tests, without their upper bounds."""
    groups = project["dependency-groups"]
    requirements = [*project["project"]["dependencies"], *groups["build"], *groups["dev"]]
    return [_without_upper_bound(requirement) for requirement in requirements]


def _without_upper_bound(requirement: str) -> str:
    """The requirement as it is, but for the upper bound; its marker (``; python_version < '3.14'``) stays."""
    versions, semicolon, marker = requirement.partition(";")
    return _UPPER_BOUND.sub("", versions) + semicolon + marker


def main() -> None:
    """Run the command line."""
    print("\n".join(newest(tomllib.loads(PROJECT.read_text(encoding="utf-8")))))


if __name__ == "__main__":
    main()
