"""Texts of closed sets in folders from others: an unknown one is a note, for every reader of the folder."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analyses.builders import tables
from tests.support.command import run
from traceviz.api import open_trace
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import SerialRunner
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.trace import schema
from traceviz.trace.tables import load, save

pytestmark = pytest.mark.process

CLOSED = [(table.name, column.name) for table in schema.TABLES.values() for column in table.closed]
OPEN = [("run", "format"), ("run", "framework"), ("windows", "recorded"), ("windows", "source"), ("steps", "marker")]
"""Texts that some code knows values of, and that may be anything."""
UNREAD = {"sync"}
"""Tables that no section reads."""
UNKNOWN = "zombie\N{ESCAPE}[31m\n<b>x</b>"


def whole_trace():
    """Return a trace that has rows in every table with a column of a closed set."""
    ms = 1_000_000
    steps = [(at * ms, 10 * ms, at // 10) for at in range(0, 100, 10)]
    return tables(
        run={"framework": "pytorch"},
        kernels=[(at * ms + 1, 5 * ms, "gemm", {"correlation_id": at}) for at in range(0, 100, 10)],
        memcpy=[(at * ms + 6 * ms, ms, "h2d", "pinned", "device", 1 << 20) for at in range(0, 100, 10)],
        memset=[(at * ms + 7 * ms, ms, 1 << 20) for at in range(0, 100, 10)],
        graph_nodes=[(5, 1, 1, {"phase": "backward"})],
        cuda_api=[(at * ms, 5, "cudaLaunchKernel", {"correlation_id": at}) for at in range(0, 100, 10)],
        sync=[(at * ms + 2 * ms, ms, "event") for at in range(0, 100, 10)],
        nvtx=[(at * ms, 9 * ms, "step") for at in range(0, 100, 10)],
        host_ops=[(at * ms, 9 * ms, "DataLoader.__next__", "input") for at in range(0, 100, 10)],
        device_ops=[(at * ms, 9 * ms, "module", "module") for at in range(0, 100, 10)],
        steps=steps,
        stack_frames=[(0, None, "main", "train.py", 3, "program")],
        stacks=[(at * ms, 10 * ms, 0, 1, {"state": "running"}) for at in range(0, 100, 10)],
        phases=[(0, 100 * ms, "program", "train.py"), *((at, 10 * ms, "step", "sgd") for at, _, _ in steps)],
        metrics=[(at * ms, "loss", 0.5, at, 0) for at in range(0, 100, 10)],
        memory_events=[(at * ms, "alloc", 1 << 20) for at in range(0, 100, 10)],
        windows=[(0, 100 * ms, "kernels")],
        totals=[("kernel", "gemm", 10, 50 * ms)],
        settings=[("run.status", "finished")],
        notes=[("lost", "info", "One event was lost.")],
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed") / "plain"
    save(whole_trace(), folder)
    return folder


def changed(plain, target, *columns, every=2):
    """Return a copy of a folder in which every second row of some columns holds a text that no set has."""
    shutil.copytree(plain, target)
    for name, column in columns:
        path = target / f"{name}.parquet"
        table = pq.read_table(path)
        texts = [UNKNOWN if at % every == 0 else text for at, text in enumerate(table[column].to_pylist())]
        kind = table.schema.field(column)
        column_of_texts = pa.array(texts, pa.string())
        if kind.type != pa.string():
            column_of_texts = column_of_texts.dictionary_encode().cast(kind.type)
        pq.write_table(table.set_column(table.column_names.index(column), kind, column_of_texts), path)
    return target


def test_every_table_with_a_closed_set_is_in_the_trace(plain):
    assert len(CLOSED) == 19
    assert all(load(plain).rows(name) > 0 for name, _ in CLOSED)


@pytest.mark.parametrize("place", range(3))
def test_an_unknown_text_of_any_column_is_a_note(plain, tmp_path, place):
    """One column of each table at a time: the first one of each, then the second, and so on."""
    by_table = {name: [column for table, column in CLOSED + OPEN if table == name] for name, _ in CLOSED + OPEN}
    assert max(map(len, by_table.values())) == 3
    columns = [(name, columns[place]) for name, columns in by_table.items() if len(columns) > place]
    notes = read(changed(plain, tmp_path / "trace", *columns))["notes"].to_pylist()[1:]
    assert {(note["code"], note["severity"]) for note in notes} == {(schema.UNKNOWN_TEXT_NOTE, "warning")}
    counts = dict(zip(columns_of(notes), (note["count"] for note in notes), strict=True))
    rows = load(plain).rows
    assert counts == {(name, column): (rows(name) + 1) // 2 for name, column in columns if (name, column) in CLOSED}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "column"), CLOSED + OPEN, ids=lambda text: text)
def test_an_unknown_text_of_any_column_is_a_note_of_the_report_and_ends_no_command(plain, tmp_path, name, column):
    folder = changed(plain, tmp_path / "trace", (name, column))
    check_report(folder, [] if (name, column) in OPEN else [(name, column)])
    check_commands(plain, folder, tmp_path)


@pytest.mark.slow
def test_unknown_texts_in_all_columns_end_no_command(plain, tmp_path):
    check_commands(plain, changed(plain, tmp_path / "trace", *CLOSED), tmp_path)


def test_unknown_texts_in_all_columns_are_noted_and_archives_store_known_ones(plain, tmp_path):
    folder = changed(plain, tmp_path / "trace", *CLOSED)
    # the events whose kind of memory is unknown are left out by their own kind
    check_report(folder, [column for column in CLOSED if column != ("memory_events", "memory")])
    Archive(tmp_path / "archive").add(folder, runner=SerialRunner())
    read_back = load(next((tmp_path / "archive").rglob("manifest.json")).parent)
    for name, column in CLOSED:
        known = {*next(one for one in schema.table(name).columns if one.name == column).values, None}
        assert set(read_back.arrow(name)[column].to_pylist()) <= known, (name, column)
    assert read_back.arrow("notes")["code"].to_pylist().count(schema.UNKNOWN_TEXT_NOTE) == len(CLOSED) - 1


def check_report(folder, columns):
    """Check that the report names these columns, except those of tables that no section reads."""
    report = run("report", folder, "--format", "json")
    assert (report.returncode, report.stderr) == (0, "")
    assert sorted(columns_of(json.loads(report.stdout)["notes"])) == sorted(
        column for column in columns if column[0] not in UNREAD
    )


def check_commands(plain, folder, tmp_path):
    """Have all commands read a folder."""
    archive, page = tmp_path / "archive", tmp_path / "page.html"
    commands = (
        ["report", folder, "--format", "html", "-o", page],
        ["doctor", folder],
        ["compare", plain, folder],
        ["archive", "add", archive, folder],
        ["archive", "list", archive],
        ["archive", "report", archive],
        ["archive", "verify", archive],
        ["archive", "query", archive, "SELECT category FROM host_ops"],
    )
    done = [run(*command) for command in commands]
    assert [call.returncode for call in done] == [0] * 8, [call.stderr for call in done]
    assert "zombie\N{ESCAPE}" not in page.read_text()


def columns_of(notes):
    """Return tables and columns that notes name."""
    texts = [note["message"] for note in notes if note["code"] == schema.UNKNOWN_TEXT_NOTE]
    return [tuple(text.partition(": texts that traceviz does not know, ")[0].split(".")) for text in texts]


@pytest.mark.parametrize("command", ["convert", "scrub"])
def test_a_copy_of_a_folder_with_unknown_texts_can_be_read(plain, tmp_path, command):
    folder = changed(plain, tmp_path / "trace", *CLOSED)
    assert run(command, folder, "-o", tmp_path / "copy").returncode == 0
    assert read(tmp_path / "copy")["kernels"].num_rows == 10


def test_ranks_with_unknown_texts_are_read_together(plain, tmp_path):
    columns = [("host_ops", "category"), ("notes", "severity")]
    trace = open_trace(*(changed(plain, tmp_path / f"rank{rank}", *columns) for rank in range(2)))
    notes = trace.arrow("notes").to_pylist()
    assert {column for _, column in columns_of(notes)} == {"category", "severity"}


def read(folder):
    return dict(TracevizFolderReader().tables(folder, ReadRequest()))


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("host_ops", "category", ["runtime", "input"] * 5),
        ("memcpy", "kind", ["unknown", "h2d"] * 5),
        ("stacks", "state", [None, "running"] * 5),
        ("phases", "kind", ["step"] * 5),
        ("notes", "severity", ["warning", "warning"]),
    ],
)
def test_an_unknown_text_is_read_as_the_schema_states(plain, tmp_path, name, column, expected):
    """The second note is that on the first."""
    folder = changed(plain, tmp_path / "trace", (name, column))
    assert read(folder)[name][column].to_pylist() == expected


def test_known_texts_are_read_as_they_are_without_a_note(plain):
    tables_read = read(plain)
    assert tables_read["notes"]["code"].to_pylist() == ["lost"]
    assert set(tables_read["host_ops"]["category"].to_pylist()) == {"input"}


def run_folder(plain, target, **manifest):
    """Return a run folder whose tables were recorded by one collector."""
    shutil.copytree(plain, target / "raw" / "torch" / "tables")
    document = {
        "kind": "traceviz.run",
        "version": 1,
        "name": "run",
        "status": "finished",
        "exit": {"code": 0, "signal": None},
        "collectors": [{"name": "torch", "state": "recorded", "sources": ["raw/torch/tables"]}],
        **manifest,
    }
    (target / "manifest.json").write_text(json.dumps(document))
    return target


def test_unknown_words_of_a_manifest_count_as_not_stated(plain, tmp_path):
    stated = {
        "status": UNKNOWN,
        "ending": {"outcome": UNKNOWN, "reason": UNKNOWN},
        "collectors": [{"name": "torch", "state": UNKNOWN, "sources": ["raw/torch/tables"]}],
    }
    folder = run_folder(plain, tmp_path / "runs" / "run", **stated)
    report = run("report", folder, "--format", "json")
    others = [run("doctor", folder), run("runs", tmp_path / "runs")]
    assert [call.returncode for call in (report, *others)] == [0] * 3, [call.stderr for call in others]
    Archive(tmp_path / "archive").add(folder, runner=SerialRunner())
    notes = json.loads(report.stdout)["notes"]
    said = [note["message"] for note in notes if note["code"] == schema.UNKNOWN_TEXT_NOTE]
    assert [message.partition(" is 'zombie")[0] for message in said] == [
        f"manifest.json: {field}" for field in ("status", "ending.outcome", "collectors.torch.state")
    ]


def test_known_words_of_a_manifest_are_not_noted(plain, tmp_path):
    report = run("report", run_folder(plain, tmp_path / "run"), "--format", "json")
    assert schema.UNKNOWN_TEXT_NOTE not in {note["code"] for note in json.loads(report.stdout)["notes"]}


@pytest.mark.parametrize("kind", ["*.sqlite", "*.xplane.pb", "*.json*", "*.nvvp"])
def test_readers_of_other_formats_give_known_texts_only(samples, kind):
    (path, *_) = sorted(samples.rglob(kind))
    assert schema.UNKNOWN_TEXT_NOTE not in open_trace(path).arrow("notes")["code"].to_pylist()
