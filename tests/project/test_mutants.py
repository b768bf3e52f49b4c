"""The tool behind ``make mutants``: what it changes, what it leaves alone, and which tests it asks."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "mutants"))
cosmic_ray = pytest.importorskip("cosmic_ray.mutating")

from operators import operators  # noqa: E402
from places import mutants  # noqa: E402

SOURCE = '''
"""A text with 1 number."""
LIMIT: int = 3


def busy(frame, wait: int | None = None):
    """Sum of 2 columns."""
    if wait is None and len(frame) < LIMIT:
        raise ValueError(f"at least {1 + 2}")
    return frame.filter(frame.ok).sort("a").sum()
'''


@pytest.fixture
def repository(tmp_path):
    """A repository of one file of those that are changed."""
    path = tmp_path / "traceviz" / "analyses" / "busy.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    return tmp_path


def test_each_of_37_operators_changes_what_it_says():
    every = operators()
    assert len(every) == 37
    for operator in every.values():
        for example in operator.examples():
            assert (
                cosmic_ray.mutate_code(example.pre_mutation_code, operator, example.occurrence)
                == example.post_mutation_code
            )


def test_annotations_texts_and_errors_are_left_alone(repository):
    changed = {(mutant.line - 1, mutant.operator) for mutant in mutants(repository)}
    assert changed == {
        (2, "NumberReplacer"),
        (7, "AddNot"),
        (7, "ReplaceAndWithOr"),
        (7, "ReplaceComparisonOperator_Is_IsNot"),
        (7, "ReplaceComparisonOperator_Lt_LtE"),
        (7, "ReplaceComparisonOperator_Lt_Gt"),
        (9, "WithoutMethod"),
        (9, "OtherMethod"),
    }


def test_a_change_is_known_again_after_2_lines_above_it(repository):
    before = {mutant.identity for mutant in mutants(repository)}
    path = repository / "traceviz" / "analyses" / "busy.py"
    path.write_text("import math\n\n" + SOURCE)
    assert {mutant.identity for mutant in mutants(repository)} == before
    assert len(before) == 10


def test_only_what_is_in_a_function_is_done_when_it_runs(repository):
    found = {mutant.line - 1: (mutant.function, mutant.is_run) for mutant in mutants(repository)}
    assert found == {2: ("", False), 7: ("busy", True), 9: ("busy", True)}


def test_the_sum_becomes_the_largest_and_the_file_stays_as_it_is(repository):
    (mutant,) = (mutant for mutant in mutants(repository) if mutant.operator == "OtherMethod")
    assert mutant.diff(repository).splitlines()[1:] == [
        '-    return frame.filter(frame.ok).sort("a").sum()',
        '+    return frame.filter(frame.ok).sort("a").max()',
    ]
    assert (repository / mutant.path).read_text() == SOURCE
