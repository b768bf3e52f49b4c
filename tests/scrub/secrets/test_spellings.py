"""Texts as they stand and decoded, the places of decoded parts, and one pattern of many texts."""

import json
import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.scrub.secrets.spellings import any_of, readings, spellings


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        (b"a%2Fb", [b"a/b"]),
        (rb"\/home\u002fada\n", [b"/home/ada\n"]),
        (b"%252Fx", [b"%2Fx", b"/x"]),
        (rb"\\\"a\\\"", [rb"\"a\"", b'"a"']),
        (b"100 % of it", []),
        (rb"C:\Users", []),
        (b"", []),
    ],
)
def test_a_text_is_read_as_often_as_it_is_encoded(text, decoded):
    first, *others = readings(text)
    assert first.text == text
    assert [reading.text for reading in others] == decoded


def test_parts_of_a_reading_have_their_place_in_the_text():
    text = b"x%2Fhome%2Fada%2Fy"
    _, reading = readings(text)
    begin, end = reading.place(reading.text.index(b"/home"), reading.text.index(b"/y"))
    assert text[begin:end] == b"%2Fhome%2Fada"


def test_places_hold_through_three_encodings():
    text = quote(json.dumps(json.dumps('say "ada" twice'))).encode()
    last = list(readings(text))[-1]
    assert last.text.count(b'"ada"') == 1
    begin, end = last.place(last.text.index(b"ada"), last.text.index(b"ada") + 3)
    assert text[begin:end] == b"ada"


def test_a_secret_is_searched_in_its_encoded_spellings():
    assert {b"a/b c", b"a%2Fb%20c", b"a%2fb%20c", rb"a\/b c", b"a/b%20c"} <= set(spellings(b"a/b c"))


TEXTS = st.lists(st.text("ab.(", min_size=1, max_size=6).map(str.encode), min_size=1, max_size=12)


@given(TEXTS, st.text("ab.(x", max_size=20).map(str.encode))
def test_it_finds_the_longest_of_the_texts_that_start_at_the_first_place(texts, content):
    found = re.search(any_of(texts), content)
    starts = [(content.find(text), -len(text)) for text in texts if text in content]
    assert (found and (found.start(), found.start() - found.end())) == (min(starts) if starts else None)


def test_texts_that_start_with_each_other_without_end_are_one_pattern():
    pattern = re.compile(any_of(b"a" * count for count in range(1, 300)))
    assert pattern.fullmatch(b"a" * 299) is not None
    assert pattern.fullmatch(b"a" * 300) is None
