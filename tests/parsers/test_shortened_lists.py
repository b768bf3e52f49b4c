"""Lists in messages: as many as fit are named; they end in dots only if more are left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.parsers.kineto import files as k
from tests.parsers.kineto.tables import read
from traceviz.core.errors import UsageError
from traceviz.parsers import sources
from traceviz.parsers.shared.log_folders import note_choice
from traceviz.parsers.unrecognised import what_it_is
from traceviz.parsers.xplane.capture import _not_read

ABC = "abcdef"
FIVE_OR_SIX = pytest.mark.parametrize(("count", "end"), [(5, "a, b, c, d, e"), (6, "a, b, c, d, e, ...")])


@FIVE_OR_SIX
def test_5_entries_of_a_folder_are_named(tmp_path, count, end):
    for name in ABC[:count]:
        (tmp_path / name).write_text("")
    assert what_it_is(b"", tmp_path)[0] == f"It is a folder without a manifest.json; it holds {end}."


@FIVE_OR_SIX
def test_5_other_runs_are_named_the_newest_first(count, end):
    others = [SimpleNamespace(name=name) for name in reversed(ABC[:count])]
    assert f"Others: {end} (--run NAME)." in note_choice(SimpleNamespace(name="new"), others, None)


@pytest.mark.parametrize(("count", "end"), [(5, "e (2)."), (6, "e (2), ....")])
def test_5_kinds_of_events_that_are_not_read_are_named_with_their_number(count, end):
    counts = Counter({name: 6 - place for place, name in enumerate(ABC[:count])})
    text = f"Events of planes that traceviz does not read: a (6), b (5), c (4), d (3), {end}"
    assert _not_read("planes", counts) == text


@FIVE_OR_SIX
def test_5_categories_that_are_not_known_are_named(tmp_path, count, end):
    events = [{**k.op("op", at, 1), "cat": name} for at, name in enumerate(ABC[:count])]
    (note,) = (
        note for note in read(tmp_path, events).arrow("notes").to_pylist() if note["code"] == "unknown-categories"
    )
    assert note["message"].endswith(f"work of the host: {end}.")
    assert note["count"] == count


@pytest.mark.parametrize(("count", "end"), [(2, "a, b"), (3, "a, b, c"), (4, "a, b, c, ...")])
def test_3_runs_of_a_folder_are_named(tmp_path, monkeypatch, count, end):
    monkeypatch.setattr(sources, "run_folders", lambda _: [Path(name) for name in ABC[:count]])
    with pytest.raises(UsageError) as refused:
        sources._inside(tmp_path)
    assert f"holds {count} runs: {end}." in str(refused.value)
