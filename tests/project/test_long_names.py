"""Names of a megabyte, each the worst for some pattern: a child with far more processor time than linear work takes."""

import subprocess
import sys

import pytest

from traceviz.render.text import simplify_signature

FUNCTIONS = {
    "signature": "from traceviz.render.text import simplify_signature as f",
    "spelling": "from traceviz.compare.kernel_pairs import spelling as f",
    "family": "from traceviz.trace.names.kernel_names import catalogue; f = catalogue().classify",
}
_UNITS = ["a", "0", " ", "(", "a(", "a(b)", "()", "::a", "a::", "[", "[lambda(", '"', "a=", "/a", "a.", "_", "<", "\\n"]
_PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
{imported}
for unit in {units!r}:
    for before, behind in (("", ""), ("void ", ")"), ("a<", "!")):
        f(before + unit * (1_000_000 // len(unit)) + behind)
print("done")
"""


@pytest.mark.process
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_name_of_a_megabyte_takes_long(name):
    program = _PROGRAM.format(imported=FUNCTIONS[name], units=_UNITS)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("done\n", 0)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("f(int)", "f"),
        ("f(a)(b", "f(a)(b"),
        ("void f", "f"),
        ("a::f<b::c>", "f<c>"),
        ("a::b", "a::b"),
        ("(f)", "(f)"),
        ("f<" + "a::b," * 3_000 + ">", "f<" + "b," * 3_000 + ">"),
        ("f<" + "a::b," * 4_000 + ">", "f<" + "a::b," * 4_000 + ">"),
    ],
)
def test_signatures_are_known_by_their_parts_and_the_longest_stay(name, shown):
    assert simplify_signature(name) == shown
