"""Print the requirements of optional dependencies of this project, one per line.

    python scripts/extras.py tensorflow jax

For an environment that holds the dependencies without traceviz itself.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def main() -> None:
    """Run the command line."""
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name in sys.argv[1:]:
        print("\n".join(extras[name]))


if __name__ == "__main__":
    main()
