"""No pattern of the package takes more than linear time: each one gets the worst texts that can be made from it.

Patterns for polars are not here: its engine takes linear time for any pattern, also a user's.
"""

import importlib
import os
import subprocess
import sys

import polars as pl
import pytest

from tests.support.package_patterns import patterns
from traceviz.analyses.derived.host.input_fetches import is_input

_NAME_BYTES = 255
BOUNDS = {
    "traceviz.analyses.derived.steps.serving._": ("traceviz.analyses.derived.steps.serving", "_LONGEST", 400),
    "traceviz.compare.work.kinds._KINDS": ("traceviz.compare.work.kinds", "_LONGEST", 200),
    "traceviz.trace.names.kernel_names.catalogue()": ("traceviz.trace.names.kernel_names", "_LONGEST", 2_000),
    "traceviz.parsers.kineto.work.copies._": ("traceviz.parsers.kineto.work.copies", "_LONGEST", 1_000),
    "traceviz.scrub.secrets.addresses._MACHINE_BEFORE": ("traceviz.scrub.secrets.addresses", "_REACH", 64),
    "traceviz.scrub.secrets.addresses._VERSION_BEFORE": ("traceviz.scrub.secrets.addresses", "_REACH", 64),
    "traceviz.scrub.secrets.redactor._LETTERS_BEFORE": ("traceviz.scrub.secrets.redactor", "_LONGEST_PART", 24),
    "traceviz.scrub.secrets.shapes._SCHEME": ("traceviz.scrub.secrets.shapes", "_LONGEST_SCHEME", 16),
    "traceviz.scrub.secrets.file_names.": (__name__, "_NAME_BYTES", 255),  # names of files: the file system cuts them
}
"""Patterns whose callers cut the text before: the constant, and how many characters it leaves."""

KNOWN_WHEN_THEY_RUN = {
    "traceviz.analyses.derived.patterns:_compiled",  # 200 characters of a name at most, and 256 names
    "traceviz.analyses.advice:_compiled",  # words of advice, and settings as they are
    "traceviz.analyses.derived.recorded.losses:_shows_refusal",  # messages of profilers, of bounded length
    "traceviz.analyses.derived.recorded.losses:find_refusal",  # the same
    "traceviz.analyses.device.precision:PrecisionAnalysis.run",  # its table is among the patterns
    "traceviz.analyses.launch.waits:advice_for",  # its table is among the patterns
    "traceviz.analyses.options:is_pattern",  # only whether the user's pattern is one
    "traceviz.analyses.ranks.collectives:bus_factor",  # its table is among the patterns
    "traceviz.collectors.nsys.window:Stopper._is_recording",  # nsys's line about our session
    "traceviz.collectors.run.machine:_first",  # files of /proc
    "traceviz.collectors.sampler.machine:_of_processor",  # /proc/cpuinfo
    "traceviz.trace.names.cuda_names:_patterns",  # its table is among the patterns
    "traceviz.doctor.machine:_number",  # what programs of the machine print
    "traceviz.trace.names.kernel_names:_Pattern.regex",  # the catalogue is among the patterns
    "traceviz.trace.names.op_families:_compiled",  # the catalogue is among the patterns
    "traceviz.parsers.xplane.capture:_without_hosts",  # names as they are, without repeats
    "traceviz.render.first_screen:_states",  # a value as it is
    "traceviz.scrub.secrets.redactor:_pattern",  # one of some redactor is among the patterns
    "traceviz.scrub.secrets.shapes:path_pattern",  # one of some redactor is among the patterns
    "traceviz.core.sanitize:visible",  # a class of characters, twice
}

LONG = {
    "archive.storage.addresses._ADDRESS": ["a:a:", "://a", "a.", "+", "a://", "1."],
    "archive.storage.addresses._USER": ["a:a:", "://a", "a", "a(", "a:@", "(a:", "@a:", "="],
    "trace.names.framework_signs._STATED_VERSION": [" ", " 1.", "\n", "1"],
    "gates.budgets._EXPRESSION": [" ", "a ", "<", "\t"],
    "doctor.trace._NONE_OF_A_KIND": ["No ", "No a ", " events collected"],
    "parsers.nsys.samples._WITH_UNIT": ["[", "[a", " ", "a [", "a[a]"],
    "parsers.nvprof.printed_text._TITLE": ["=", "==", " ", "==1", "==1==", "==1== \n", "\n"],
    "parsers.nvprof.printed_text._START": [" ", "==1== NVPROF is profiling process 1, command: ", "=", "a "],
    "parsers.nvprof.sniff._SESSION": ["<session", "<session ", "<session>", "<", "<session .nvv"],
    "parsers.xplane.groups.groups._STEP": ["0", "0a", "00000"],
    "parsers.xplane.steps._NUMBER": [" ", "0", "_", "#0", "a_"],
}
"""Patterns that took quadratic time once: what was repeated."""

_WHOLE = ("gates.budgets._EXPRESSION",)
"""Those of them that a whole text has to match: nothing is searched with them."""

_LONG_PROGRAM = """
import importlib, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for name, units in {long!r}.items():
    module, _, attribute = ("traceviz." + name).rpartition(".")
    pattern = getattr(importlib.import_module(module), attribute)
    for unit in units:
        for end in ("", "!", "\\n a"):
            text = unit * (1_000_000 // len(unit)) + end
            text = text if isinstance(pattern.pattern, str) else text.encode()
            pattern.fullmatch(text)
            if name not in {whole!r}:
                sum(1 for _ in pattern.finditer(text))
print("done")
"""


def _run(*command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def known():
    return patterns()


def test_the_patterns_of_the_package_are_found(known):
    found, unknown = known
    places = {one.where for one in found}
    assert len(found) > 250
    assert {f"traceviz.{name}" for name in LONG} <= places
    assert {one.where.removeprefix("traceviz.") for one in found if one.whole}.intersection(LONG) >= set(_WHOLE)
    assert {text.partition(": ")[0] for text in unknown} == KNOWN_WHEN_THEY_RUN


@pytest.mark.parametrize("name", BOUNDS)
def test_what_cuts_a_text_before_its_pattern_is_there(name, known):
    module, constant, longest = BOUNDS[name]
    assert getattr(importlib.import_module(module), constant, _NAME_BYTES) == longest
    assert any(one.where.startswith(name) for one in known[0])


@pytest.mark.slow
def test_patterns_that_were_quadratic_read_a_megabyte():
    done = _run("-c", _LONG_PROGRAM.format(long=LONG, whole=_WHOLE))
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-2_000:]


def _not_linear(part, most):
    bounds = [str(word) for name, (_, _, longest) in BOUNDS.items() for word in (name, longest)]
    done = _run("-m", "tests.support.pattern_times", part, str(most), *bounds)
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout.partition("unknown\n")[0].splitlines()


@pytest.mark.slow
def test_every_pattern_takes_linear_time():
    assert _not_linear("0/1", 80 if os.environ.get("TRACEVIZ_EXTREMES") == "all" else 16) == []


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+b", r"(.*)(.*)(.*)x$"])
def test_patterns_of_users_take_linear_time_on_names_of_a_megabyte(pattern):
    names = pl.DataFrame({"name": ["a" * 1_000_000 + "!", "aab"]})
    assert names.select(is_input(pattern)).to_series().to_list()[0] is False
