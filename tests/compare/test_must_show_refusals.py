"""Sides that cannot be read, and sides that support no verdict: messages and codes."""

import shutil
from pathlib import Path

import pytest

from tests.compare.command import compared, refused
from tests.compare.small_traces import kineto_steps
from traceviz import api
from traceviz.core.errors import TracevizError

pytestmark = [pytest.mark.process, pytest.mark.slow]

GATE = ("--fail-on-regression", "5%")
NO_TRACE = "is not a trace that traceviz knows."


@pytest.fixture(scope="module")
def sides(samples, tmp_path_factory):
    """Files and folders of every kind that cannot be a side, and one that can."""
    folder = tmp_path_factory.mktemp("sides")
    good = samples / "synthetic/healthy.sqlite"
    shutil.copy(good, folder / "good.sqlite")
    report = api.to_text(api.report_on(good), "json")
    texts = {
        "good.json": report,
        "other.json": '{"schema": "other/1", "x": 1}',
        "newer.json": report.replace("traceviz.report/1", "traceviz.report/99", 1),
        "cut.json": report[: len(report) // 2],
        "comparison.json": api.to_text(api.compare(good, good), "json"),
        "list.json": "[1, 2, 3]",
        "notes.sqlite": "not a database",
        "empty.sqlite": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "cut.sqlite").write_bytes(good.read_bytes()[:50_000])
    (folder / "random.sqlite").write_bytes(bytes(range(256)) * 20)
    (folder / "folder").mkdir()
    (folder / "folder/notes.txt").write_text("nothing to see")
    (folder / "nothing").mkdir()
    return folder


UNREADABLE = {
    "absent.sqlite": ("No such file", "Check the path."),
    "cut.sqlite": ("cut short", "Copy or export it again."),
    "notes.sqlite": (NO_TRACE, "It is a text file.", "Name a trace of nsys,"),
    "random.sqlite": (NO_TRACE, "Its first bytes are those of no format", "Name a trace of nsys,"),
    "empty.sqlite": (NO_TRACE, "It is an empty file.", "Record or copy it again."),
    "other.json": (NO_TRACE, "there is no list of events (traceEvents)"),
    "list.json": (NO_TRACE, "there is no list of events (traceEvents)"),
    "newer.json": ("It is of traceviz.report/99, another version.", "Write it again from its trace"),
    "cut.json": ("This is not a JSON report.",),
    "comparison.json": ("It is a comparison of reports.", "Name the traces or reports that it compared."),
    "folder": (NO_TRACE, "it holds notes.txt", "Name a trace inside the folder."),
    "nothing": (NO_TRACE, "It is an empty folder.", "Name the folder that the trace was written to."),
}
"""The message about a side, and the remedy."""


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_side_that_cannot_be_read_is_named_with_what_to_do_and_nothing_is_written(sides, tmp_path, name):
    good, bad = sides / "good.sqlite", sides / name
    for arguments in ((good, bad), (bad, good)):
        code, message = refused(*arguments, *GATE, "-o", tmp_path / "out.txt")
        assert code == 3
        assert [part for part in (bad.name, *UNREADABLE[name]) if part not in message] == []
        assert str(good) not in message
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["absent.sqlite", "notes.sqlite", "cut.json", "folder"])
def test_no_side_is_read_before_all_are_recognised(sides, name):
    stages = []
    read = api.ReadOptions(progress=lambda *stage: stages.append(stage))
    with pytest.raises(TracevizError, match=name):
        api.compare(sides / "good.sqlite", sides / name, read=read)
    assert stages == []
    api.compare(sides / "good.sqlite", sides / "good.sqlite", read=read)
    assert stages != []


@pytest.mark.parametrize("arguments", [("{0}/good.sqlite", "{0}/locked"), ("{0}/locked", "--by", "batch")])
def test_a_folder_that_may_not_be_read_is_no_failed_gate(sides, monkeypatch, arguments):
    """Without a message the exit code would be 1, which is that of a gate."""
    (sides / "locked").mkdir(exist_ok=True)
    listed = Path.iterdir

    def denied(folder):
        if folder.name == "locked":
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", denied)
    code, message = refused(*(argument.format(sides) for argument in arguments))
    assert code == 3
    assert f"{sides}/locked cannot be opened." in message


def unjudged(*sides):
    """Return a comparison without a verdict: exit code 0, and 4 if a gate or the user requires a verdict."""
    result = compared(*sides)
    assert (result.code, result.outcome, result.stderr) == (0, "cannot-judge", "")
    gated = compared(*sides, *GATE)
    assert (gated.code, gated.sentence) == (4, result.sentence)
    assert "1 of 1 gate cannot be judged.\n  regression: " in gated.stderr
    required = compared(*sides, "--require-verdict")
    assert (required.code, "Not every side can be judged." in required.stderr) == (4, True)
    assert result.sentence.removeprefix("Cannot judge: ").split(".")[0] in required.stderr
    return result


def saved(trace, folder, name):
    """Return the report of a trace as JSON: comparing that again costs a tenth of analysing the trace again."""
    report = folder / f"{name}.json"
    report.write_text(api.to_text(api.report_on(trace), "json"))
    return report


@pytest.fixture
def eight(tmp_path):
    """The report of a trace of eight steps."""
    return saved(kineto_steps(tmp_path / "eight.pt.trace.json", [200] * 8), tmp_path, "eight")


def test_what_is_cut_but_readable_is_compared_and_said_to_be_incomplete(samples, tmp_path):
    whole = samples / "synthetic/torch_healthy.pt.trace.json.gz"
    cut = tmp_path / "cut.pt.trace.json.gz"
    cut.write_bytes(whole.read_bytes()[:-4000])
    result = compared(whole, cut)
    assert result.code == 0
    (lost,) = (row for row in result.rows("comparability") if row["code"] == "lost")
    assert lost["severity"] == "warning"
    assert lost["text"].startswith("events are missing from cut, and its totals are lower bounds: ")


def test_a_network_of_convolutions_is_not_compared_with_a_transformer(samples, tmp_path):
    """Both run on a CPU, without kernels to distinguish them: the sentence starts with the difference."""
    network, transformer = samples / "kineto/workers.pt.trace.json.gz", samples / "kineto/two_ranks"
    result = unjudged(saved(network, tmp_path, "network"), saved(transformer, tmp_path, "transformer"))
    assert result.sentence.startswith("Cannot judge: the sides do different work. Convolutions take 63.")
    assert "of operator time in network, and there are none in transformer" in result.sentence
    assert result.facts("effect")["speedup"] is None
    assert result.rows("comparability")[0]["code"] == "program"
