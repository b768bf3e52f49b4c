"""Contents of a capture."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.run import analyze


@pytest.mark.parametrize(
    ("parts", "events", "device_events"),
    [
        ({"kernels": [(0, 5, "k"), (6, 5, "k")]}, 2, 2),
        (
            {
                "kernels": [(0, 5, "k")],
                "memcpy": [(6, 5, "h2d", "pinned", "device", 8)] * 3,
                "os_calls": [(0, 5, "poll")],
            },
            5,
            4,
        ),
        ({"os_calls": [(0, 5, "poll")] * 3}, 3, None),
    ],
)
def test_events_are_counted_of_the_tables_that_there_are(parts, events, device_events):
    report = analyze(tables(**parts))
    assert (report.fact("capture", "events"), report.fact("capture", "device_events")) == (events, device_events)
