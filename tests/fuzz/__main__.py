"""Reads spoilt inputs of all formats, and says what broke.

    python -m tests.fuzz --minutes 60                     all formats, on all cores
    python -m tests.fuzz --cases 300 --format kineto      the first 300 of one format
    python -m tests.fuzz --format kineto --case 123456    one case; its input is kept, made small first with --small
    python -m tests.fuzz --sum build/fuzz/*.json          the tables of several runs together

Exit code 1 where anything broke.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import sys
import tempfile
import time
from pathlib import Path

# One thread each: there are as many processes as cores, and inputs are small.
for _variable in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ.setdefault("TRACEVIZ_NSYS", "/nonexistent/nsys")  # nothing here is to start a program

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "sample_traces")]


def main() -> int:
    """Run the command line; gives the exit code."""
    options = _options()
    from tests.fuzz import tally as tallies

    if options.sum:
        together = tallies.added_up(json.loads(path.read_text(encoding="utf-8")) for path in options.sum)
        print(tallies.table(together))
        return 0
    import_everything()
    from tests.fuzz.formats.registry import FORMATS
    from tests.fuzz.runner import Runner

    formats = [FORMATS[name] for name in options.format or FORMATS]
    if options.case is not None:
        return _one(formats[0], options)
    runner = Runner(
        formats,
        options.first,
        options.cases,
        None if options.minutes is None else options.minutes * 60,
        options.workers or len(os.sched_getaffinity(0)),
        options.output / "faults" if options.output else None,
        options.output / f"{options.name or time.strftime('%Y%m%dT%H%M%S')}.json" if options.output else None,
        options.quiet,
    )
    tally = runner.run()
    print(tallies.table(tally))
    return 1 if tally.found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--format", action="append", help="format, instead of all; may be repeated")
    parser.add_argument("--cases", type=int, help="how many of each format")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--minutes", type=float, help="how long to go on")
    parser.add_argument("--workers", type=int, help="processes (one per core)")
    parser.add_argument("--output", type=Path, help="folder for counts and faults")
    parser.add_argument("--name", help="name of the file of counts")
    parser.add_argument("--quiet", action="store_true", help="print the table only")
    parser.add_argument("--case", type=int, help="run one case, and do all with it that can be done")
    parser.add_argument("--without", type=int, action="append", default=[], help="step of the case to leave out")
    parser.add_argument("--small", action="store_true", help="leave out the steps that the fault does not need")
    parser.add_argument("--sum", type=Path, nargs="+", help="files of counts to add up")
    options = parser.parse_args()
    if not options.sum and options.case is None and options.cases is None and options.minutes is None:
        parser.error("give --cases, --minutes or --case")
    if options.case is not None and len(options.format or ()) != 1:
        parser.error("--case needs one --format")
    return options


def import_everything() -> None:
    """Load all modules of traceviz, so that no child has to."""
    import traceviz

    importlib.import_module("polars")
    for package in (traceviz, importlib.import_module("traceviz.parsers")):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            is_ours = module.name.split(".")[1] not in {
                "benchmarks",
                "examples",
                "tests",
                "scripts",
                "sample_traces",
                "build",
            }
            if is_ours and "inject" not in module.name and not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def _one(format_, options: argparse.Namespace) -> int:
    """Run one case in this process, with everything that can be done with an input."""
    from tests.fuzz.cases import Case, Depth
    from tests.fuzz.runner import Samples, run_case, small

    home = Path(tempfile.mkdtemp(prefix="traceviz-fuzz-"))
    samples = Samples(home / "samples").of(format_)
    case = Case(format_, options.case, frozenset(options.without))
    if options.small:
        case = small(case, samples, home / "small")
    outcome, fault = run_case(case, samples, home / "input", Depth(random=case.random("depth")))
    print(f"{case.command}\n{outcome}\n{home / 'input'}")
    if fault is not None:
        print(f"{fault.kind}: {fault.what} {fault.place}\n{fault.detail}")
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main())
