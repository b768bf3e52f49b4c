"""Every event of every capture is in the group that xprof puts it in."""

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.conftest import Ask
from traceviz.parsers.xplane.decode.raw import Space
from traceviz.parsers.xplane.decode.scan import read_space
from traceviz.parsers.xplane.groups.groups import Groups, group

pytestmark = pytest.mark.oracle

PUBLIC = {
    "AMD-AGI__TraceLens__chi-mi300x-013.ord.vultr.cpe.ice.amd.com.xplane.pb": 6024,
    "ecbme4040__e4040-2022fall-assign2-yg2820__2022_10_31_19_09_08__gaoyihaodeMacBook-Pro.local.xplane.pb": 196,
    "ecbme4040__e4040-2022fall-assign2-yg2820__2022_11_04_21_26_12__instance-ecbm.xplane.pb": 706,
    "openxla__xprof__2cc1243__tpu_inference_2.xplane.pb": 26_723,
    "tensorflow__profiler__34.83.195.179_6003.xplane.pb": 23_128,
}
"""Public captures with the number of their events."""

Key = tuple[Any, ...]


def ours(space: Space, groups: Groups) -> Iterator[tuple[Key, tuple[int, bool]]]:
    """Yield every event, with its group and whether it marks a step."""
    for place, (plane, found) in enumerate(zip(space.planes, groups.planes, strict=True)):
        events = plane.events
        columns = (events.line, events.name, events.offset_ps, events.dur_ps, found.group_id, found.marker)
        for number, name, offset, dur, group_id, marker in zip(*(column.tolist() for column in columns), strict=True):
            line = plane.lines[number]
            yield (place, line.id, line.name, plane.names[name], offset, dur), (group_id, marker)


def theirs(answer: dict[str, Any]) -> dict[Key, list[tuple[int, bool]]]:
    """Return the same of xprof's answer, which also holds events of lines that xprof derives."""
    events: dict[Key, list[tuple[int, bool]]] = defaultdict(list)
    for place, plane in enumerate(answer["planes"]):
        on_host = plane["name"].startswith("/host:")
        for line in plane["lines"]:
            columns = ("event", "offset_ps", "duration_ps", "group_id", "step_name")
            for name, offset, dur, group_id, step in zip(*(line[column] for column in columns), strict=True):
                value = -1 if group_id is None else group_id
                events[place, line["id"], line["name"], name, offset, dur].append((value, on_host and step is not None))
    return events


def differences(file: Path, ask_xprof: Ask) -> tuple[int, Counter[str]]:
    """Number of events, and how many of them differ in what."""
    content = file.read_bytes()
    space = read_space(gzip.decompress(content) if file.suffix == ".gz" else content)
    expected, seen = theirs(ask_xprof("grouped", file)), Counter[Key]()
    differing: Counter[str] = Counter()
    total = 0
    for key, (group_id, marker) in ours(space, group(space)):
        total += 1
        if seen[key] >= len(expected[key]):
            differing["missing"] += 1
            continue
        their_group, their_marker = expected[key][seen[key]]
        seen[key] += 1
        differing["group"] += group_id != their_group
        differing["marker"] += marker != their_marker
    return total, +differing


@pytest.mark.parametrize("name", PUBLIC)
def test_public_captures_are_grouped_as_by_xprof(name: str, public_traces: Path, ask_xprof: Ask):
    assert differences(public_traces / "xplane" / name, ask_xprof) == (PUBLIC[name], Counter())


def test_sample_captures_are_grouped_as_by_xprof(samples: Path, ask_xprof: Ask):
    files = sorted((samples / "xplane").rglob("*.xplane.pb*"))
    if not files:
        pytest.skip("no sample capture is shipped")
    assert {file.name: found for file in files for _, found in [differences(file, ask_xprof)] if found} == {}
