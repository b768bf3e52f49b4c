"""Check that a wheel holds what it should: one package at the top, with parsers and collectors inside it.

python scripts/check_wheel.py dist/traceviz_toolkit-*.whl
"""

from __future__ import annotations

import sys
import zipfile

NEEDED = (
    "traceviz/py.typed",
    "traceviz/cli.py",
    "traceviz/parsers/__init__.py",
    "traceviz/collectors/__init__.py",
    "traceviz/data/kernel_families.toml",
)


def problems(names: list[str]) -> list[str]:
    """What is wrong with a wheel that holds the files ``names``."""
    tops = {name.split("/")[0] for name in names}
    foreign = sorted(top for top in tops if top != "traceviz" and not top.endswith(".dist-info"))
    missing = [name for name in NEEDED if name not in names]
    return [f"{name} would clash with other packages" for name in foreign] + [f"{name} is missing" for name in missing]


def main() -> int:
    """Check the wheel named on the command line; gives the exit code."""
    names = zipfile.ZipFile(sys.argv[1]).namelist()
    found = problems(names)
    print("\n".join(found) or f"{sys.argv[1]}: {len(names)} files, all in traceviz/")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
