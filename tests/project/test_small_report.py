"""Counts of what a small report costs before any event is looked at: they may fall, and not rise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

BOUNDS = {"modules": 345, "dataclasses": 290, "patterns": 190, "collects": 780}
"""Modules of the package that are imported, dataclasses that it defines, patterns that it compiles, and queries that
polars plans and runs."""
SMALLEST = 0.8
"""Less than this share of a bound is a reason to lower it."""

COUNTED = """
import contextlib, dataclasses, io, json, re._compiler, sys

counts = dict.fromkeys(("modules", "dataclasses", "patterns", "collects"), 0)
process_class, compile_pattern = dataclasses._process_class, re._compiler.compile

def defined(cls, *options):
    counts["dataclasses"] += cls.__module__.startswith("traceviz")
    return process_class(cls, *options)

def compiled(pattern, flags=0):
    frame = sys._getframe(1)
    while frame.f_globals["__name__"].split(".")[0] in ("re", "functools"):
        frame = frame.f_back
    counts["patterns"] += frame.f_globals["__name__"].startswith("traceviz")
    return compile_pattern(pattern, flags)

def profile(frame, event, argument):
    if event == "c_call" and argument.__name__ == "collect" and "polars" in frame.f_globals["__name__"]:
        counts["collects"] += 1

dataclasses._process_class, re._compiler.compile = defined, compiled
from traceviz.cli.main import main

sys.setprofile(profile)
with contextlib.redirect_stdout(io.StringIO()):
    main(["report", sys.argv[1]], standalone_mode=False)
sys.setprofile(None)
counts["modules"] = sum(name.split(".")[0] == "traceviz" for name in sys.modules)
print(json.dumps(counts))
"""


@pytest.fixture(scope="module")
def counts(samples: Path) -> dict[str, int]:
    trace = samples / "synthetic" / "input_bound.sqlite"
    done = subprocess.run([sys.executable, "-c", COUNTED, str(trace)], check=True, capture_output=True, text=True)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("what", sorted(BOUNDS))
def test_a_small_report_costs_no_more_than_it_did(counts: dict[str, int], what: str) -> None:
    assert BOUNDS[what] * SMALLEST <= counts[what] <= BOUNDS[what]
