"""Write parsers/data/cupti_cbids.csv: CUPTI's numbers for the functions of the CUDA runtime and driver.

nvprof stores API calls by these numbers alone. They are enumerated in two headers, ``cupti_runtime_cbid.h`` and
``cupti_driver_cbid.h``, which come with every CUDA toolkit and with the wheel ``nvidia-cuda-cupti-cu12`` of PyPI. A
number never changes its meaning, so the newest headers serve all files.

::

    pip download --no-deps nvidia-cuda-cupti-cu12
    python scripts/cupti_cbids.py nvidia_cuda_cupti_cu12-*.whl            # write
    python scripts/cupti_cbids.py nvidia_cuda_cupti_cu12-*.whl --check    # exit 1 where the file differs
    python scripts/cupti_cbids.py /usr/local/cuda/extras/CUPTI/include    # the same from a toolkit
"""

from __future__ import annotations

import argparse
import re
import sys
import zipfile
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "parsers" / "data" / "cupti_cbids.csv"
HEADERS = {"runtime": "cupti_runtime_cbid.h", "driver": "cupti_driver_cbid.h"}
_ENTRY = re.compile(r"^\s*CUPTI_(?:RUNTIME|DRIVER)_TRACE_CBID_(cu\w+)\s*=\s*(\d+)\s*,", re.MULTILINE)
"""Functions start with ``cu``; the entries INVALID, SIZE and FORCE_INT do not, and are not functions."""


def header(source: Path, name: str) -> str:
    """Return the text of the header ``name`` in a folder or in a wheel."""
    if source.is_dir():
        return (source / name).read_text(encoding="utf-8")
    with zipfile.ZipFile(source) as wheel:
        (member,) = (entry for entry in wheel.namelist() if entry.endswith("/" + name))
        return wheel.read(member).decode("utf-8")


def table(source: Path) -> str:
    """Return the data file: a line of column names, then domain, number and function of every entry, by number."""
    lines = ["domain,cbid,function"]
    for domain, name in HEADERS.items():
        entries = sorted((int(number), function) for function, number in _ENTRY.findall(header(source, name)))
        lines += [f"{domain},{number},{function}" for number, function in entries]
    return "\n".join([*lines, ""])


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the wheel, or the folder of the headers")
    parser.add_argument("--check", action="store_true", help="compare with the file and write nothing")
    arguments = parser.parse_args()
    fresh = table(arguments.source)
    if arguments.check:
        same = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == fresh
        print(
            f"{TARGET.name} {'lists what the headers do' if same else 'differs from the headers: run without --check'}"
        )
        return 0 if same else 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(fresh, encoding="utf-8")
    print(f"{TARGET.name}: {fresh.count(chr(10)) - 1} functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
