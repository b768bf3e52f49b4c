"""Efficiency over devices, and the serial share."""

from dataclasses import replace

import pytest

from tests.compare.sections_of import facts, section
from tests.compare.tables.studies import run, study
from tests.compare.tables.test_curve import curve
from traceviz.compare.report.document import document
from traceviz.compare.tables.amdahl import fit, karp_flatt
from traceviz.core.errors import UsageError

DEVICES = (1, 2, 4, 8)


def amdahl(share, devices):
    return 100 * (share + (1 - share) / devices)


def test_a_tenth_that_is_serial_is_found_again():
    law = fit(DEVICES, [amdahl(0.1, n) for n in DEVICES])
    assert (law.share, law.most) == (pytest.approx(0.1), pytest.approx(10.0))
    assert (law.low, law.high) == (pytest.approx(0.1, abs=1e-6), pytest.approx(0.1, abs=1e-6))
    assert karp_flatt(100 / amdahl(0.1, 8), 8) == pytest.approx(0.1)


def test_the_interval_of_the_serial_share_holds_it_in_19_of_20_studies():
    import numpy as np

    generator = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        numbers = [n for n in DEVICES for _ in range(3)]
        law = fit(numbers, [amdahl(0.1, n) * generator.normal(1, 0.03) for n in numbers])
        held += law.low <= 0.1 <= law.high
    assert 0.92 <= held / 400 <= 0.98


def test_work_that_is_divided_without_rest_has_no_serial_share_and_no_bound():
    law = fit((1, 2, 4), (8, 4, 2))
    assert law.share == pytest.approx(0, abs=1e-9)
    assert fit((1, 2), (8, 4)) is None
    faster = fit((1, 2, 4), (8, 3.5, 1.5))  # more than twice as fast with two: more cache
    assert (faster.share, faster.most) == (0.0, None)


def test_8_devices_of_a_program_with_a_serial_tenth_are_59_percent_efficient():
    runs = [
        run(amdahl(0.1, n) * scatter, devices=n, repeat=k) for n in DEVICES for k, scatter in enumerate((1, 1.01, 0.99))
    ]
    rows, texts = curve(study(runs, [], scaling="devices"), "scaling")
    assert [row["speedup"] for row in rows] == pytest.approx([1, 1.818, 3.077, 4.706], rel=1e-3)
    assert [row["efficiency"] for row in rows] == pytest.approx([1, 0.909, 0.769, 0.588], rel=1e-3)
    assert [row["serial_share"] for row in rows] == [None, *[pytest.approx(0.1, abs=1e-3)] * 3]
    assert texts[0].startswith("By Amdahl's law 10.0 % of the work is serial (95 % interval 9.")
    assert document(study(runs, [], scaling="devices")).fact("scaling", "most_speedup") == pytest.approx(10, rel=0.01)


def test_throughput_counts_where_more_devices_do_more_in_a_step():
    """Steps last 10 ms on any number of devices, whose batches add up."""
    runs = [run(10, gpus=n, measures={"samples_per_second": 1000 * n}) for n in (1, 2, 4)]
    rows, texts = curve(study(runs, [], scaling="gpus"), "scaling")
    assert [row["efficiency"] for row in rows] == pytest.approx([1, 1, 1])
    assert texts == [
        "No serial share is seen (95 % interval 0.0 to 0.0 %): as far as measured, gpus share all of the work."
    ]


def test_devices_that_computed_are_counted_where_no_tag_says_how_many():
    computing = section("devices", facts(computing=4))
    four = replace(run(30, devices=""), sections=(*run(30).sections, computing))
    rows, _ = curve(study([run(100, devices=1), four], [], scaling="devices"), "scaling")
    assert [(row["tag.devices"], row["ideal"]) for row in rows] == [(1, 1), (4, 4)]


def test_two_numbers_have_an_efficiency_and_no_law():
    rows, texts = curve(study([run(10, cores=1), run(8, cores=2)], [], scaling="cores"), "scaling")
    assert rows[1]["efficiency"] == pytest.approx(0.625)
    assert texts == ["A serial share by Amdahl's law takes three numbers of cores; 2 have figures."]


def test_costs_that_grow_with_the_devices_do_not_fit_amdahls_law():
    runs = [run(step, ranks=n) for n, step in ((1, 100), (2, 55), (4, 40), (8, 90))]
    rows, texts = curve(study(runs, [], scaling="ranks"), "scaling")
    assert [row["serial_share"] for row in rows][1:] == sorted(row["serial_share"] for row in rows[1:])
    assert texts[0].startswith("Amdahl's law does not fit: it misses a measured time by ")


@pytest.mark.parametrize(
    ("why", "options"),
    [
        (r"accuracy is no measure of speed", {"measures": ("accuracy",)}),
        (r"devices=0", {"scaling": "devices"}),
    ],
)
def test_what_has_no_efficiency_is_refused(why, options):
    runs = [run(9 - n, devices=n, learned={"accuracy": 0.5}) for n in (0, 1, 2)]
    with pytest.raises(UsageError, match=why):
        document(study(runs, [], **{"scaling": "devices", **options}))
