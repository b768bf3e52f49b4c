"""Check that a wheel holds what it should: one package at the top, with parsers and collectors inside it.

A wheel for one platform holds the compiled scanners, for all Pythons from 3.11 on; one for any platform was made where
there is no C compiler, and does not.

python scripts/check_wheel.py dist/traceviz_toolkit-*.whl
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

NEEDED = (
    "traceviz/py.typed",
    "traceviz/cli/main.py",
    "traceviz/parsers/__init__.py",
    "traceviz/collectors/__init__.py",
    "traceviz/data/kernel_families.toml",
    "traceviz/parsers/data/cupti_cbids.csv",
)

SCANNERS = ("traceviz/parsers/_kineto.abi3.so", "traceviz/parsers/_xplane.abi3.so")
STABLE, PURE = "-cp311-abi3-", "-py3-none-any.whl"


def problems(wheel: str, names: list[str]) -> list[str]:
    """What is wrong with a wheel of this name that holds the files ``names``."""
    tops = {name.split("/")[0] for name in names}
    foreign = sorted(top for top in tops if top != "traceviz" and not top.endswith(".dist-info"))
    missing = [name for name in NEEDED if name not in names]
    found = [f"{name} would clash with other packages" for name in foreign] + [f"{name} is missing" for name in missing]
    found += [f"{name} is a source of the compiled scanners" for name in names if name.endswith((".c", ".h"))]
    expected = {(True, False): True, (False, True): False}.get((STABLE in wheel, wheel.endswith(PURE)))
    if expected is None:
        found.append(f"{wheel} is neither for all Pythons from 3.11 on nor for any platform")
    else:
        wrong = "missing" if expected else "in a wheel for any platform"
        found += [f"{scanner} is {wrong}" for scanner in SCANNERS if expected != (scanner in names)]
    return found


def main() -> int:
    """Check the wheel named on the command line; gives the exit code."""
    wheel = Path(sys.argv[1])
    names = zipfile.ZipFile(wheel).namelist()
    found = problems(wheel.name, names)
    scanners = "with" if set(SCANNERS) <= set(names) else "without"
    print("\n".join(found) or f"{wheel}: {len(names)} files, all in traceviz/, {scanners} the compiled scanners")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
