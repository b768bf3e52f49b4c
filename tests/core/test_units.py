"""Base units to text: each expected string is worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.core.units import UNITS, Scale, counted, format_ns, format_ratio, format_value, parse_bytes, scale_of


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (0.0, "0 ns"),
        (1, "1 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),
        (99_940, "99.9 µs"),
        (99_960, "100 µs"),
        (999_400, "999 µs"),
        (999_950, "1.00 ms"),
        (1_234_567, "1.23 ms"),
        (999_949_999, "1.00 s"),
        (45_600_000_000, "45.6 s"),
        (98_153_000_000, "98.2 s"),
        (999_400_000_000, "999 s"),
        (999_600_000_000, "16.7 min"),
        (3_599_000_000_000, "60.0 min"),
        (3_600_000_000_000, "1.00 h"),
        (11_799_000_000_000, "3.28 h"),
        (112_320_000_000_000, "31.2 h"),
        (36_000_000_000_000_000, "10,000 h"),
        (-7_200_000_000_000, "−2.00 h"),
        (-1_500_000, "−1.50 ms"),
        (0.5, "0.50 ns"),
        (12.34, "12.3 ns"),
        (999.96, "1.00 µs"),
    ],
)
def test_times_keep_three_digits_and_carry_into_the_next_unit(nanoseconds, text):
    assert format_ns(nanoseconds) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (228, "bytes", "228 B"),
        (999, "bytes", "999 B"),
        (1_000, "bytes", "1.00 kB"),
        (8_791_261_184, "bytes", "8.79 GB"),
        (999_999_999_999, "bytes", "1.00 TB"),
        (14_364_806_000.0, "bytes/s", "14.4 GB/s"),
        (0.31, "joule", "310 mJ"),
        (8_791, "joule", "8.79 kJ"),
        (999_960, "joule", "1.00 MJ"),
        (2_890, "per_second", "2,890/s"),
        (0.125, "per_second", "0.125/s"),
        (91_884, "count", "91,884"),
        (1.5, "count", "1.5"),
        (2.0, "count", "2"),
        (3.0, "factor", "3.00×"),
        (12.34, "factor", "12.3×"),
        (1_234, "factor", "1,234×"),
        (1_234_567, "id", "1234567"),
        (1_234_567, "number", "1,234,567"),
        (12_345.6, "number", "12,346"),
        (0.00123, "number", "0.00123"),
        (3.4e38, "number", "3.4e+38"),
        (-2.5e15, "number", "\N{MINUS SIGN}2.5e+15"),
        (10**16, "number", "10,000,000,000,000,000"),
        (True, "bool", "yes"),
        (False, "count", "no"),
        ("h2d", "text", "h2d"),
        (None, "ns", "-"),
        (None, "text", "-"),
    ],
)
def test_values_are_written_in_their_unit(value, unit, text):
    assert format_value(value, unit) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0, "0.0 %"),
        (0.0001, "<0.1 %"),
        (0.00049, "<0.1 %"),
        (0.0005, "0.1 %"),
        (0.1234, "12.3 %"),
        (1.0, "100.0 %"),
        (-0.0001, "−<0.1 %"),
        (-0.05, "−5.0 %"),
    ],
)
def test_ratios_are_percentages_and_never_vanish(ratio, text):
    assert format_ratio(ratio) == text


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match="'seconds'"):
        format_value(1, "seconds")


@given(st.integers(0, 2**62))
def test_a_time_reads_back_within_half_a_percent(nanoseconds):
    number, unit = format_ns(nanoseconds).split(" ")
    scale = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "h": 3.6e12}[unit]
    assert math.isclose(float(number.replace(",", "")) * scale, nanoseconds, rel_tol=0.00501)


@given(st.integers(-(2**62), 2**62) | st.floats(-1e15, 1e15), st.sampled_from(UNITS))
def test_any_number_is_short_and_printable(value, unit):
    text = format_value(value, unit)
    assert text.isprintable()
    assert 1 <= len(text) <= 28


@pytest.mark.parametrize(("count", "text"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps"), (1_234, "1,234 steps")])
def test_one_thing_is_singular(count, text):
    assert counted(count, "step") == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64GB", 64_000_000_000),
        ("1.5 MB", 1_500_000),
        (" 64KiB", 65_536),
        ("300", 300),
        ("300B", 300),
        ("64iB", None),
        ("-1GB", None),
        ("much", None),
        ("9" * 400 + "TB", None),
    ],
)
def test_a_size_is_read_as_bytes(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("largest", "unit", "size", "name"),
    [
        (97_000_000, "ns", 1_000_000, "ms"),
        (-999, "ns", 1, "ns"),
        (999_499_999_999, "ns", 1_000_000_000, "s"),
        (999_500_000_000, "ns", 60_000_000_000, "min"),
        (7_200_000_000_000, "ns", 3_600_000_000_000, "h"),
        (2.5e9, "bytes/s", 10**9, "GB/s"),
        (0, "bytes", 1, "B"),
        (0.4, "ratio", 0.01, "%"),
        (12, "per_second", 1, "/s"),
        (1e9, "count", 1, ""),
    ],
)
def test_all_ticks_of_an_axis_have_the_unit_of_its_largest_value(largest, unit, size, name):
    assert scale_of(largest, unit) == Scale(size, name)
