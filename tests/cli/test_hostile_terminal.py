"""Terminal output of hostile names and contents: no control characters except line ends and our own colours."""

import gzip
import json
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.analyses.builders import tables
from tests.analyses.test_contract import busy_trace
from tests.parsers.run.folders import run_folder
from tests.parsers.xplane.files import Ref, Unsigned, event, line, space
from tests.parsers.xplane.traces import US, environment, gpu, host
from tests.support.pseudo_terminal import PAYLOAD, harm, seen
from traceviz import api
from traceviz.archive.runners import choose
from traceviz.archive.runners.local import SerialRunner
from traceviz.cli import options as cli_options
from traceviz.trace.tables import save

pytestmark = pytest.mark.process

FIRST_WORD = PAYLOAD[:4]
SAFE_JSON = "cu", "ProfilerStep", "[memory]", "Iteration", "process_", "thread_", "aten::"
"""Beginnings of texts of a Kineto trace that its reader needs as they are."""


@dataclass(frozen=True)
class Hostile:
    """A folder of an evil name, and files in it with evil names and contents, by format."""

    folder: Path
    files: dict[str, Path]

    @property
    def missing(self) -> Path:
        return self.folder / PAYLOAD / "missing"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Nothing that depends on time or on other processes: no progress bar, which moves the cursor, and no workers."""
    monkeypatch.setattr(cli_options, "PATIENCE_S", 1e9)
    monkeypatch.setattr(choose, "runner_for", lambda *_, **__: SerialRunner())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, samples) -> Hostile:
    folder = tmp_path_factory.mktemp("hostile") / f"in {PAYLOAD}"
    folder.mkdir()
    synthetic = samples / "synthetic"
    files = {
        "nsys": sqlite_of(synthetic / "pageable_copies.sqlite", folder / f"{PAYLOAD}.sqlite"),
        "schema": with_odd_schema(synthetic / "healthy.sqlite", folder / f"{PAYLOAD}schema.sqlite"),
        "nvprof": sqlite_of(synthetic / "nvprof_torch_input_bound.nvvp", folder / f"{PAYLOAD}.nvvp"),
        "kineto": folder / f"{PAYLOAD}.pt.trace.json",
        "xplane": folder / f"{PAYLOAD}.xplane.pb",
        "csv": folder / f"{PAYLOAD}.csv",
        "nothing": folder / f"{PAYLOAD}.txt",
        "folder": folder / f"{PAYLOAD}folder",
        "run": folder / f"{PAYLOAD}run",
        "report": folder / f"{PAYLOAD}.json",
    }
    recorded = json.loads(gzip.decompress((synthetic / "torch_input_bound_workers.pt.trace.json.gz").read_bytes()))
    files["kineto"].write_text(json.dumps(json_of(recorded)))
    files["xplane"].write_bytes(xplane())
    printed = (synthetic / "nvprof_summary.csv").read_text()
    files["csv"].write_text(printed.replace("void", f"void {PAYLOAD}".replace("\r\n", "")))
    files["nothing"].write_text(PAYLOAD)
    save(busy_trace(), files["folder"])
    manifest = json.loads((files["folder"] / "manifest.json").read_text())
    spoilt = {name: f"{value}{PAYLOAD}" if name not in manifest else value for name, value in manifest.items()}
    (files["folder"] / "manifest.json").write_text(json.dumps({**spoilt, "source": PAYLOAD, "format": PAYLOAD}))
    problem = {"code": PAYLOAD, "message": PAYLOAD, "fix": PAYLOAD}
    stated = {"name": PAYLOAD, "tags": {PAYLOAD: PAYLOAD}, "command": PAYLOAD, "problems": [problem], "host": PAYLOAD}
    run_folder(files["run"], {PAYLOAD: tables(kernels=[(0, 100, PAYLOAD)]), "torch": files["kineto"]}, stated)
    files["report"].write_text(api.to_text(api.report_on(files["kineto"]), "json"))
    return Hostile(folder, files)


def sqlite_of(sample: Path, place: Path) -> Path:
    """Return a database whose texts end with what steers a terminal; names of functions of CUDA stay."""
    shutil.copy(sample, place)
    with sqlite3.connect(place) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for _, column, kind, *_ in database.execute(f'PRAGMA table_info("{table}")').fetchall():
                if "TEXT" in kind.upper():
                    change = f'"{column}" = "{column}" || ? WHERE typeof("{column}") = \'text\''
                    database.execute(f'UPDATE "{table}" SET {change} AND "{column}" NOT LIKE \'cu%\'', (PAYLOAD,))
    database.close()
    return place


def with_odd_schema(sample: Path, place: Path) -> Path:
    """Return a database that SQLite refuses, quoting a name of it."""
    shutil.copy(sample, place)
    with sqlite3.connect(place) as database:
        database.execute("PRAGMA writable_schema = 1")
        name = PAYLOAD.replace("\r\n", "")
        last = "rowid = (SELECT max(rowid) FROM sqlite_master WHERE type = 'table')"
        database.execute(f"UPDATE sqlite_master SET name = ?, tbl_name = ?, sql = ? || ' (' WHERE {last}", (name,) * 3)
    database.close()
    return place


def json_of(value, key=None):
    """Return a Kineto document whose texts end with terminal controls, except words of the format."""
    if isinstance(value, dict):
        return {name: json_of(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [json_of(item, key) for item in value]
    is_word = key in {"ph", "cat", "bp", "kind"} or not isinstance(value, str) or value.startswith(SAFE_JSON)
    return value if is_word else value + PAYLOAD


def xplane() -> bytes:
    """Return a capture of three steps on one GPU with evil names everywhere."""
    host_events, kernels = [], []
    for step in range(3):
        at = step * 100 * US
        launched = {"correlation_id": Unsigned(step), "context_id": "$$1", "tf_op": Ref(f"{PAYLOAD}/x:MatMul")}
        host_events += [
            event("train", at, 90 * US, {"step_num": step, "_r": 1}),
            event(f"IteratorGetNext:{PAYLOAD}", at + US, 10 * US),
            event("cuLaunchKernel", at + 20 * US, 5 * US, {"correlation_id": step, "device_id": 0}),
            event(PAYLOAD, at + 40 * US, 20 * US),
        ]
        kernels.append(event(f"gemm{PAYLOAD}", at + 30 * US, 40 * US, launched))
    return space(
        host(line(100, *host_events, name=f"python3{PAYLOAD}", timestamp_ns=1_000)),
        gpu(line(13, *kernels, name=f"Stream #13({PAYLOAD})", timestamp_ns=1_000)),
        environment(),
        hostnames=[PAYLOAD],
        warnings=[PAYLOAD],
        errors=[PAYLOAD],
    )


def check(*arguments, code=0, shows=FIRST_WORD, columns=(80,)) -> str:
    """Run a command in a terminal, and return the last page; it must be harmless, and show what is evil."""
    page = ""
    for width in columns:
        ended, page = seen(*arguments, columns=width)
        assert harm(page) == [], next(row for row in page.splitlines() if harm(row))
        assert ended == code, page
        assert shows in page
    return page


# Names and options


def test_the_check_itself_notices_every_kind_of_harm():
    assert harm(f"\x1b[31m\x1b[1mfine\x1b[0m ␛ \ufffd\n{PAYLOAD}") == [
        *("\x1b[8;41m", "\x1b", "\a", "\x9b", "\r", "\t", "\b", "\x7f", "\x85"),
        *("\u202e", "\u2066", "\u2028", "\u200f"),
    ]


def on_a_missing_trace(missing: Path) -> Iterator[tuple[int, tuple]]:
    out = "-o", missing.with_name("out")
    yield from ((3, (name, missing, *rest)) for name, *rest in (("report",), ("doctor",), ("convert", *out)))
    yield from ((3, (name, missing, *rest)) for name, *rest in (("scrub", *out), ("compare", missing)))
    yield 2, ("archive", "add", missing.with_name("new"), missing)
    yield 2, ("archive", "show", missing, "abcd")
    yield 2, ("archive", "query", missing, "SELECT 1")
    yield 2, ("archive", "trend", missing, "step_median")
    yield 2, ("archive", "remove", missing, "abcd")
    yield 2, ("archive", "export", missing, "abcd", *out)
    yield from ((2, ("archive", name, missing)) for name in ("list", "report", "verify"))


def test_names_of_what_is_not_there_are_harmless_in_errors(hostile):
    cases = list(on_a_missing_trace(hostile.missing))
    assert len(cases) == 14
    for code, arguments in cases:
        check(*arguments, code=code, columns=(80, 100))


@pytest.mark.parametrize(
    "arguments",
    [
        (PAYLOAD,),
        (f"--{PAYLOAD}",),
        ("explain", PAYLOAD),
        ("explain", PAYLOAD * 10_000),
        ("completion", PAYLOAD),
        ("report", f"--{PAYLOAD}"),
        *(("report", "x", name, PAYLOAD) for name in ("--width", "--from", "--section", "--budget", "--fail-on")),
        ("report", "x", "--budgets", PAYLOAD),
        *(("compare", name, PAYLOAD) for name in ("--group", "--min-effect")),
        *(("collect", name, PAYLOAD, "--", "true") for name in ("--with", "--tag", "--steps", "--delay")),
        ("collect", "--with", "resources", "--dry-run", "--", PAYLOAD),
        ("archive", PAYLOAD),
    ],
    ids=ascii,
)
def test_what_was_typed_is_harmless_and_short_in_errors(arguments):
    codes = {"collect": 127 if "--dry-run" in arguments else 125}
    page = check(*arguments, code=codes.get(arguments[0], 2), shows="EVIL")
    assert len(page) < 5_000


def test_the_plan_of_a_recording_is_harmless(tmp_path):
    place = tmp_path / PAYLOAD
    check("collect", "--dry-run", "--with", "resources", "-o", place, "--", "echo", PAYLOAD)
    done = check("collect", "--no-report", "--with", "resources", "-o", place, "--tag", f"a={PAYLOAD}", "--", "true")
    assert "the run is in" in done


# Contents of traces


@pytest.mark.parametrize(
    "name", ["nsys", *(pytest.param(name, marks=pytest.mark.slow) for name in ("kineto", "xplane", "nvprof", "csv"))]
)
def test_reports_comparisons_and_copies_of_an_evil_trace_are_harmless(hostile, tmp_path, name):
    file = hostile.files[name]
    out = tmp_path / PAYLOAD
    check("report", file, columns=(80, 100))
    check("report", file, "--all", columns=(80, 100))
    check("report", file, "--all", "--format", "markdown")
    for format_name in ("json", "csv", "markdown", "github"):
        check("report", file, "--format", format_name)
    check("doctor", file, columns=(80, 100))
    check("doctor", file, "--json")
    check("compare", file, file, columns=(80, 100))
    check("compare", "--group", f"{PAYLOAD}={file}", "--group", f"b={file}", "--base", PAYLOAD)
    check("convert", file, "-o", out, "--keep-private")
    check("report", out, "--all", "--top", "99", columns=(80, 100))
    check("convert", file, "-o", out, code=2)
    check("scrub", file, "-o", tmp_path / f"{PAYLOAD}{file.suffix}", code=3 if name == "csv" else 0)


@pytest.mark.parametrize("name", ["folder", "run", "report", "schema", "nothing"])
def test_whatever_is_made_of_an_evil_file_is_harmless(hostile, tmp_path, name):
    file = hostile.files[name]
    readable = name in {"folder", "run"}
    code = 0 if readable else 3
    check("report", file, code=code, columns=(80, 100))
    check("doctor", file, code=code)
    check("convert", file, "-o", tmp_path / PAYLOAD, code=code)
    check("scrub", file, "-o", tmp_path / f"{PAYLOAD}2", code=code)
    check("compare", file, file, code=0 if name == "report" else code)


# Archives


@pytest.fixture
def archive(hostile, tmp_path) -> Path:
    """An archive with a hostile name and hostile traces; it keeps all their private data."""
    place = tmp_path / f"archive {PAYLOAD}"
    (tmp_path / f"{PAYLOAD}link").symlink_to("nowhere")
    sources = [hostile.files[name] for name in ("nsys", "kineto", "schema", "nothing")]
    named = "--tag", f"t={PAYLOAD}", "--job", PAYLOAD
    page = check("archive", "add", place, *sources, *named, "--keep-private")
    assert "Quarantined: not read, and kept out:" in page
    return place


def test_every_command_on_an_archive_of_evil_traces_is_harmless(hostile, archive, tmp_path):
    check("archive", "add", archive, hostile.files["kineto"])
    for columns in ((), ("--columns", "all")):
        check("archive", "list", archive, *columns, columns=(80, 100))
    for format_name in ("csv", "json", "markdown"):
        check("archive", "list", archive, "--columns", "all", "--format", format_name)
    check("archive", "report", archive, columns=(80, 100))
    check("archive", "report", archive, "--job", PAYLOAD, code=2)
    check("archive", "trend", archive, "step_median", "--per", "t")
    check("archive", "trend", archive, PAYLOAD, code=2)
    _, ids = seen("archive", "query", archive, "SELECT trace_id FROM traces ORDER BY format DESC", "--format", "csv")
    nsys, kineto = ids.split()[1:]
    for trace_id in (nsys, kineto):
        check("archive", "show", archive, trace_id, columns=(80, 100))
    check("archive", "show", archive, PAYLOAD, code=2)
    check("archive", "export", archive, nsys, "-o", tmp_path / PAYLOAD)
    check("archive", "export", archive, nsys, "-o", tmp_path / PAYLOAD, code=2)
    check("archive", "export", archive, nsys, "--table", PAYLOAD, "-o", tmp_path / "out", code=2)
    check("archive", "remove", archive, "--where", PAYLOAD, code=2)
    check("archive", "remove", archive, nsys)


QUERIES = {
    "SELECT * FROM catalogue": 0,
    "SELECT * FROM tags": 0,
    "SELECT name FROM kernels LIMIT 9": 0,
    f"SELECT '{PAYLOAD}' AS \"{PAYLOAD}\", ['{PAYLOAD}'] AS many": 0,
    "SELECT CAST(name AS INTEGER) FROM kernels": 2,
    "SELECT error(name) FROM kernels": 2,
    f"SELECT {PAYLOAD} FROM kernels": 2,
    f'SELECT "{PAYLOAD}" FROM kernels': 2,
    f"FROM '{PAYLOAD}'": 2,
    PAYLOAD: 2,
}


@pytest.mark.slow
def test_answers_and_errors_of_queries_are_harmless_in_all_formats(archive):
    for query, code in QUERIES.items():
        for format_name in ("terminal", "csv", "json", "markdown"):
            check("archive", "query", archive, query, "--format", format_name, code=code)
    for condition in (PAYLOAD, f"job = '{PAYLOAD}", "CAST(job AS INTEGER) = 1"):
        check("archive", "list", archive, "--where", condition, code=2)


def test_what_is_wrong_with_an_archive_is_harmless(archive):
    (archive / PAYLOAD).write_text("x")
    (archive / "work" / PAYLOAD).mkdir(parents=True)
    folders = sorted(path.parent for path in archive.glob("traces/*/*/manifest.json"))
    assert len(folders) == 2
    (folders[0] / PAYLOAD).write_text("x")
    (folders[1] / "manifest.json").write_text(json.dumps({"kind": PAYLOAD, "files": {PAYLOAD: {"sha256": PAYLOAD}}}))
    for options in ((), ("--quick",)):
        check("archive", "verify", archive, *options, code=1)
    check("archive", "report", archive, "--job", PAYLOAD, code=2)
    assert "Taken out of the archive" in check("archive", "verify", "--repair", archive)


# Progress


def test_the_progress_bar_shows_names_and_moves_the_cursor_by_itself_only(monkeypatch, hostile):
    monkeypatch.setattr(cli_options, "PATIENCE_S", -1.0)
    code, page = seen("compare", hostile.files["kineto"], hostile.files["nsys"])
    assert code == 0
    assert f"{FIRST_WORD}␛[8;41m␛]52;" in page
    for own in ("\x1b[?25l", "\x1b[?25h", "\x1b[2K", "\x1b[1A", "\r"):
        page = page.replace(own, "")
    assert harm(page) == []
