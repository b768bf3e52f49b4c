from collections import Counter

import pytest

from benchmarks.diagnosis.score import GOOD, Grade, score_seeds


@pytest.mark.slow
def test_first_sentences_on_two_hundred_worlds_are_right_or_honest():
    """The bounds leave room for chance, as each new knob draws other worlds: about two standard deviations.

    Of these worlds, 94 % are right or honest and 1 % is false blame. Such shares have standard deviations of 1.7 % and
    0.7 %. The bounds rise with the score.
    """
    scores = [scored for world in score_seeds(list(range(1, 201)), jobs=2) for scored in world]
    grades = Counter(scored.grade for scored in scores)

    assert grades.total() == 200
    assert sum(grades[grade] for grade in GOOD) >= 0.91 * 200, grades
    assert grades[Grade.FALSE_BLAME] <= 0.02 * 200, grades
