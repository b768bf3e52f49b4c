"""Foreign text that is harmless to look at."""

import pytest

from traceviz.core.sanitize import Lines, bounded, one_line, sentence, visible


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb\0c\x1bd\x7fe", "a␊b␀c␛d␡e"),
        ("\u202ertl\u200b", "\ufffdrtl\ufffd"),
        ("no\u00a0break", "no break"),
        ("核 é ❤\ufe0f", "核 é ❤\ufffd"),
        ("e\u0301\u0302\u0303\u0304", "e\u0301\u0302"),
        ("\udcff", "\ufffd"),
    ],
)
def test_invisible_characters_become_visible(name, shown):
    assert visible(name) == shown


def test_a_million_characters_of_any_kind_are_one_harmless_line_of_as_many():
    text = "".join(map(chr, range(0xD700, 0xE000))) * 440 + "\x1b]52;c;YQ==\a"
    assert len(text) > 1_000_000
    assert len(shown := visible(text)) == len(text)
    assert shown.isprintable()
    assert shown.endswith("␛]52;c;YQ==␇")
    assert shown.encode()[:3] == chr(0xD700).encode()


def test_marks_on_marks_are_cut_to_two_wherever_they_stand():
    assert visible("e" + "\u0301" * 100_000 + "x" + "\u0301" * 2) == "e\u0301\u0301x\u0301\u0301"


def test_the_middle_of_a_long_text_is_left_out_between_words_and_counted():
    text = " ".join(f"word{number}" for number in range(20_000))
    short = bounded(text)
    head, _, tail = short.partition(" … ")
    count, _, tail = tail.partition(" characters left out … ")
    assert (len(text), len(short), count) == (188_889, 1979, "186,943")
    assert head.endswith(" word175")
    assert tail.startswith("word19935 ")
    assert bounded(short) == short
    assert len(head) + len(tail) + int(count.replace(",", "")) == len(text)


@pytest.mark.parametrize(("length", "shown"), [(1999, 1999), (2000, 2000), (2001, 1978), (10**6, 1983)])
def test_a_text_is_cut_above_2000_characters_even_where_it_is_one_word(length, shown):
    assert len(bounded("x" * length)) == shown


def test_line_breaks_that_traceviz_makes_stay_and_those_that_it_quotes_do_not():
    lines = Lines.of("LINE 1: a\nb", "  ^")
    assert lines == "LINE 1: a␊b\n  ^"
    assert one_line(lines) is lines
    assert one_line(f"{lines}") == "LINE 1: a␊b␊  ^"
    assert sentence("a\n\n b\x1b") == "a b␛"
