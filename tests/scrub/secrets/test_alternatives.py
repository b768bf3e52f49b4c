"""One pattern of many texts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from traceviz.scrub.secrets.alternatives import any_of

TEXTS = st.lists(st.text("ab.(", min_size=1, max_size=6).map(str.encode), min_size=1, max_size=12)


@given(TEXTS, st.text("ab.(x", max_size=20).map(str.encode))
def test_it_finds_the_longest_of_the_texts_that_start_at_the_first_place(texts, content):
    found = re.search(any_of(texts), content)
    starts = [(content.find(text), -len(text)) for text in texts if text in content]
    assert (found and (found.start(), found.start() - found.end())) == (min(starts) if starts else None)


def test_texts_that_start_with_each_other_without_end_are_one_pattern():
    pattern = re.compile(any_of(b"a" * count for count in range(1, 1_200)))
    assert pattern.fullmatch(b"a" * 1_199) is not None
    assert pattern.fullmatch(b"a" * 1_200) is None
