"""Check the contents of a wheel: one package at the top, with parsers and collectors inside it.

A wheel for one platform contains the compiled scanners, for all Pythons from 3.11 on. A wheel for any platform was
built without a C compiler, and contains no scanners.

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
    "traceviz/data/definitions.toml",
    "traceviz/data/kernel_families.toml",
    "traceviz/data/op_families.toml",
    "traceviz/parsers/data/cupti_cbids.csv",
    "traceviz/render/html/assets/components.css",
    "traceviz/render/html/assets/fragment.css",
    "traceviz/render/html/assets/main.js",
    "traceviz/render/html/assets/style.css",
    "traceviz/render/html/assets/timeline-main.js",
)

SCANNERS = (
    "traceviz/core/arrays/_compiled.abi3.so",
    "traceviz/parsers/_kineto.abi3.so",
    "traceviz/parsers/_sqlite.abi3.so",
    "traceviz/parsers/_xplane.abi3.so",
)
STABLE, PURE = "-cp311-abi3-", "-py3-none-any.whl"


def problems(wheel: str, names: list[str]) -> list[str]:
    """Return the problems of a wheel of this name that holds the files ``names``, one line each."""
    tops = {name.split("/")[0] for name in names}
    clashing = sorted(top for top in tops if top != "traceviz" and not top.endswith(".dist-info"))
    lines = [f"{name} would clash with other packages" for name in clashing]
    lines += [f"{name} is missing" for name in NEEDED if name not in names]
    lines += [f"{name} is a source of the compiled scanners" for name in names if name.endswith((".c", ".h"))]
    expected = {(True, False): True, (False, True): False}.get((STABLE in wheel, wheel.endswith(PURE)))
    if expected is None:
        lines.append(f"{wheel} is neither for all Pythons from 3.11 on nor for any platform")
    else:
        wrong = "missing" if expected else "in a wheel for any platform"
        lines += [f"{scanner} is {wrong}" for scanner in SCANNERS if expected != (scanner in names)]
    return lines


def main() -> int:
    """Check the wheel named on the command line; returns the exit code."""
    wheel = Path(sys.argv[1])
    names = zipfile.ZipFile(wheel).namelist()
    lines = problems(wheel.name, names)
    scanners = "with" if set(SCANNERS) <= set(names) else "without"
    print("\n".join(lines) or f"{wheel}: {len(names)} files, all in traceviz/, {scanners} the compiled scanners")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
