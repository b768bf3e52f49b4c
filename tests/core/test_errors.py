"""Errors for people: short and harmless, with any quoted text."""

import pickle

import pytest

from traceviz.core.errors import DamagedTraceError, MissingTableError, UsageError
from traceviz.core.sanitize import Lines

ESCAPE = "\x1b]52;c;cm0gLXJm\a\u202e\n\udc80"
SHOWN = "␛]52;c;cm0gLXJm␇\ufffd␊\ufffd"


def test_what_an_error_quotes_is_visible_and_its_parts_are_lines():
    error = DamagedTraceError(f"a{ESCAPE}", f"b{ESCAPE}", f"c{ESCAPE}")
    assert (error.what, error.why, error.fix) == (f"a{SHOWN}", f"b{SHOWN}", f"c{SHOWN}")
    assert str(error) == f"a{SHOWN} b{SHOWN} c{SHOWN}"
    assert repr(error) == f"DamagedTraceError('{error}')"
    str(error).encode()


def test_an_error_of_400_kb_has_less_than_2_kb_a_part():
    error = UsageError("x " * 200_000, "y " * 200_000)
    assert (len(error.what), len(error.why), len(str(error))) == (1980, 1980, 3961)
    assert "398,053 characters left out" in error.what


def test_lines_of_our_own_survive_a_copy_and_the_way_to_another_process():
    error = UsageError("what", Lines.of("LINE 1: SELECT", "        ^"), "fix")
    for same in (UsageError(error.what, error.why, error.fix), pickle.loads(pickle.dumps(error))):
        assert same.why.splitlines() == ["LINE 1: SELECT", "        ^"]
        assert (same.what, same.fix, str(same)) == ("what", "fix", str(error))


@pytest.mark.parametrize("error", [MissingTableError.named("steps", ["run"]), UsageError.unknown("metric", "a", ["b"])])
def test_errors_are_the_same_in_another_process(error):
    same = pickle.loads(pickle.dumps(error))
    assert (type(same), same.what, same.why, same.fix) == (type(error), error.what, error.why, error.fix)
