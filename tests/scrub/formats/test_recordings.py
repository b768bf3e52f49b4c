"""Scrubbing folders: runs of ``traceviz collect``, log folders of TensorBoard, the traces of several ranks."""

import gzip
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.parsers.kineto.files import complete, trace
from tests.parsers.run.folders import manifest
from tests.parsers.run.stack_files import described, process, sample
from tests.parsers.run.stack_files import write as write_stacks
from tests.parsers.xplane.files import event, line, plane, space
from tests.scrub.leaky_database import build
from traceviz.api import convert, report_on
from traceviz.core.errors import OutputExistsError, UnknownFormatError
from traceviz.parsers.run.samples import PART_SCHEMA
from traceviz.scrub import MANIFEST, Redactor, scrub, scrub_folder, secrets_in
from traceviz.trace.tables import load

TOKEN = "tok-3f9a8b7c6d5e"
ENVIRONMENT = b"\0PATH=/usr/bin\0API_TOKEN=" + TOKEN.encode() + b"\0HOSTNAME=gpu-node-17\0USER=adalove\0\0"


def torch_trace() -> bytes:
    """Return a trace with a token in a range; only the report of nsys next to it shows that it is one."""
    events = [
        complete("aten::mm", 10, 20, category="cpu_op"),
        complete(f"with {TOKEN} on gpu-node-17", 40, 5, category="user_annotation"),
    ]
    return trace(events, header={"host_name": "gpu-node-17"})


PRIVATE_STACKS = [
    process(4711, name="/home/adalove/bin/train.py"),
    *described(),
    ["frame", 10, f"load_{TOKEN}", "clients/adalove/secret/data.py", 7, "program"],
    ["frame", 11, "get", "torch/utils/data/dataloader.py", 8, "library"],
    ["frame", 12, "get", "adalove_tools/own/cache.py", 9, "library"],
    ["frame", 13, "dumps", "json/encoder.py", 10, "standard"],
    *(["stack", number, 0, number] for number in range(10, 14)),
    ["samples", [sample(2_000 + number, 1, number) for number in range(10, 14)]],
    ["phase", "saving", f"save of adalove to {TOKEN}", None, 2_100, 50, 12],
    ["metric", f"loss of {TOKEN}", 0.5, 3, None, 2_120, "adalove"],
    ["thread", 0, 12, "worker of adalove", True],
    ["end", 3_000],
]

COMMAND = "python train.py --arch resnet50v2 --data …/imagenet2012"
"""As ``traceviz collect`` keeps a command: nothing in it is a secret, not even if it looks distinctive."""


def run(folder: Path, command: str = COMMAND) -> Path:
    """Return a run folder with a report, a trace of PyTorch, samples of resources, and what collectors note."""
    for name in ("nsys", "torch/4711", "resources"):
        (folder / "raw" / name).mkdir(parents=True)
    raw = folder / "raw"
    (raw / "nsys/report.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 1.\n" + ENVIRONMENT)
    (raw / "nsys/nsys.log").write_text(f"stdout: {TOKEN}")
    name = "gpu-node-17_4711.1700000000000.pt.trace.json.gz"
    (raw / "torch/4711" / name).write_bytes(gzip.compress(torch_trace()))
    (raw / "torch/4711/status.json").write_text(json.dumps({"pid": 4711, "file": "/home/adalove/x", "state": "saved"}))
    (raw / "torch/4711/problems.jsonl").write_text('{"code": "slow", "message": "see /home/adalove/log"}\n{"cut')
    described = {"kind": "traceviz.resources", "version": 1, "state": "ended", "settings": {"machine.cpu": "EPYC"}}
    processes = [{"pid": 4711, "name": "/home/adalove/bin/python"}]
    (raw / "resources/resources.json").write_text(json.dumps({**described, "processes": processes, "rate_hz": 10}))
    samples = {"unix_ns": [1, 2], "pid": [4711, 4711], "gpu": [None, None], "metric": ["program CPU", f"of {TOKEN}"]}
    table = pa.table({**samples, "unit": ["cores", "cores"], "value": [0.5, 0.7]}).select(PART_SCHEMA.names)
    pq.write_table(table.cast(PART_SCHEMA), raw / "resources/part-00001.parquet")
    write_stacks(raw / "stacks/4711/stacks.jsonl", PRIVATE_STACKS)
    sources = {"nsys": "raw/nsys/report.nsys-rep", "torch": f"raw/torch/4711/{name}", "resources": "raw/resources"}
    collectors = [{"name": collector, "state": "recorded", "sources": [place]} for collector, place in sources.items()]
    stated = manifest(
        collectors=collectors,
        command=command,
        left_out=["command line", "environment"],
        tags={"batch": "64", "user": "adalove"},
        machine={"host": "gpu-node-17", "cores": 8},
        problems=[{"code": "x", "message": f"cannot open /home/adalove/{TOKEN}.bin"}],
        ending={"outcome": "timed-out", "reason": "timed out after 60 s", "last_lines": ["the user's own words"]},
    )
    (folder / "output.log").write_text("the user's own words")
    (folder / "manifest.json").write_text(json.dumps(stated))
    return folder


def everything(folder: Path) -> str:
    """Return names, raw bytes, and decoded content of all files of a folder."""
    texts = []
    for path in folder.rglob("*"):
        texts.append(path.relative_to(folder).as_posix())
        if path.is_file():
            content = path.read_bytes()
            texts.append(content.decode("latin-1"))
            if content.startswith(b"\x1f\x8b"):
                texts.append(gzip.decompress(content).decode())
            if path.suffix == ".parquet":
                texts.append(str(pq.read_table(path).to_pydict()))
    return "\n".join(texts)


@pytest.mark.parametrize("secret", [TOKEN, "adalove", "gpu-node-17", "/home"])
def test_no_secret_of_any_recording_is_left_in_a_run(tmp_path: Path, secret: str) -> None:
    assert secret in everything(run(tmp_path / "run"))
    scrub(tmp_path / "run", tmp_path / "clean")
    assert secret not in everything(tmp_path / "clean")


def test_a_run_keeps_its_recordings_and_gets_its_tables(tmp_path: Path) -> None:
    result = scrub(run(tmp_path / "run"), clean := tmp_path / "clean")
    files = {path.relative_to(clean).as_posix() for path in clean.rglob("*") if path.is_file()}
    assert {
        "manifest.json",
        MANIFEST,
        "raw/torch/4711/host_4711.1700000000000.pt.trace.json.gz",
        "raw/torch/4711/status.json",
        "raw/torch/4711/problems.jsonl",
        "raw/resources/resources.json",
        "raw/resources/part-00001.parquet",
        "raw/stacks/4711/stacks.jsonl",
        "tables/manifest.json",
    } <= files
    assert dict(result.left_out) == {
        "raw/nsys/report.nsys-rep": "nsys-rep: a format that scrub cannot write again",
        "raw/nsys/nsys.log": "no trace",
        "output.log": "no trace",
    }
    assert load(clean / "tables").rows("host_ops") == 2  # the operation and the annotation


def test_stacks_keep_functions_lines_and_the_folders_of_public_libraries(tmp_path: Path) -> None:
    shutil.rmtree(run(tmp_path / "run") / "raw" / "torch")  # without the time of the recording
    scrub(tmp_path / "run", clean := tmp_path / "clean")
    lines = [json.loads(line) for line in (clean / "raw/stacks/4711/stacks.jsonl").read_text().splitlines()]
    written = {tuple(line[2:5]) for line in lines if line[0] == "frame" and line[1] >= 10}
    frames = load(clean / "tables").arrow("stack_frames").to_pylist()
    expected = {
        ("load_[removed]", "data.py", 7),
        ("get", "torch/utils/data/dataloader.py", 8),
        ("get", "cache.py", 9),
        ("dumps", "json/encoder.py", 10),
    }
    assert written == expected
    assert {(row["function"], row["file"], row["line"]) for row in frames if row["file"] != "train.py"} == expected
    assert load(clean / "tables").rows("stacks") == 4
    (figure,) = load(clean / "tables").arrow("metrics").to_pylist()
    assert (figure["name"], figure["value"], figure["source"]) == ("loss of [removed]", 0.5, "program")


def test_the_manifest_of_a_run_keeps_what_is_not_private(tmp_path: Path) -> None:
    scrub(run(tmp_path / "run"), clean := tmp_path / "clean")
    stated = json.loads((clean / "manifest.json").read_text())
    assert stated["command"] == COMMAND
    settings = load(clean / "tables").arrow("settings").to_pylist()
    assert [row["value"] for row in settings if row["key"] == "run.command"] == [COMMAND]
    assert stated["tags"] == {"batch": "64", "user": "[removed]"}
    assert stated["machine"] == {"host": "[removed]", "cores": 8}
    assert stated["ending"]["last_lines"] == "[removed]"
    kept = {row["key"]: row["value"] for row in settings if row["key"].startswith("run.ending.")}
    assert kept == {"run.ending.outcome": "timed-out", "run.ending.reason": "timed out after 60 s"}
    assert [collector["sources"] for collector in stated["collectors"]] == [
        [],
        ["raw/torch/4711/host_4711.1700000000000.pt.trace.json.gz"],
        ["raw/resources"],
    ]
    assert json.loads((clean / "raw/torch/4711/status.json").read_text()) == {
        "pid": 4711,
        "file": "[removed]",
        "state": "saved",
    }


@pytest.mark.parametrize(
    ("command", "kept"),
    [("python with 2 arguments", "python with 2 arguments"), ("python --data /home/ada/x --token s3cr3t", "[removed]")],
)
def test_a_command_stays_only_if_it_is_one_that_collect_keeps_whatever_the_manifest_says(tmp_path, command, kept):
    scrub(run(tmp_path / "run", command), clean := tmp_path / "clean")
    assert json.loads((clean / "manifest.json").read_text())["command"] == kept
    assert ("s3cr3t" in everything(clean)) is False


def test_a_scrubbed_run_reads_with_and_without_its_tables(tmp_path: Path) -> None:
    scrub(run(tmp_path / "run"), clean := tmp_path / "clean")
    assert report_on(clean).run
    assert report_on(clean / "raw/torch").run


def test_the_list_of_what_went_holds_no_value(tmp_path: Path) -> None:
    result = scrub(run(tmp_path / "run"), tmp_path / "clean")
    stated = json.loads((tmp_path / "clean" / MANIFEST).read_text())
    assert stated["removed"] == dict(result.removed)
    assert stated["removed"]["private properties"] >= 3
    assert stated["secrets"] == result.secrets >= 3


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    (tmp_path / "outside.json").write_bytes(torch_trace())
    (folder / "raw/torch/link.json").symlink_to(tmp_path / "outside.json")
    (folder / "raw/elsewhere").symlink_to(tmp_path)
    result = scrub(folder, tmp_path / "clean")
    assert dict(result.left_out)["raw/torch/link.json"] == "a link"
    assert not (tmp_path / "clean/raw/elsewhere").exists()


def test_a_damaged_recording_is_left_out_and_said(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    (folder / "raw/torch/cut.pt.trace.json").write_bytes(torch_trace()[:-20])
    result = scrub(folder, tmp_path / "clean")
    assert dict(result.left_out)["raw/torch/cut.pt.trace.json"].startswith("damaged: ")
    assert not (tmp_path / "clean/raw/torch/cut.pt.trace.json").exists()


def test_log_folders_keep_their_layout_under_names_without_hosts(tmp_path: Path) -> None:
    profile = tmp_path / "logs/plugins/profile/2026_11_21"
    profile.mkdir(parents=True)
    for host in ("gpu-node-17", "gpu-node-18"):
        content = space(plane("/host:CPU", line(1, event(f"on {host}", 0, 9_000_000), name="python")), hostnames=[host])
        (profile / f"{host}.xplane.pb").write_bytes(content)
    (tmp_path / "logs/events.out.tfevents.1.gpu-node-17.v2").write_bytes(b"\x18\0\0\0")
    result = scrub(tmp_path / "logs", clean := tmp_path / "clean")
    places = sorted(path.relative_to(clean).as_posix() for path in clean.rglob("*") if path.is_file())
    assert places == [
        "plugins/profile/2026_11_21/host.xplane.pb",
        "plugins/profile/2026_11_21/host1.xplane.pb",
        MANIFEST,
    ]
    assert result.left_out == (("events.out.tfevents.1.[removed].v2", "no trace"),)
    assert "gpu-node" not in everything(clean)


def test_ranks_stay_ranks(tmp_path: Path) -> None:
    (tmp_path / "ranks").mkdir()
    for rank in range(2):
        header = {"distributedInfo": {"rank": rank, "world_size": 2}}
        content = trace([complete("aten::mm", 10, 20 + rank, category="cpu_op")], header=header)
        (tmp_path / f"ranks/rank{rank}.pt.trace.json").write_bytes(content)
    scrub(tmp_path / "ranks", tmp_path / "clean")
    assert sorted(path.name for path in (tmp_path / "clean").iterdir()) == [
        "rank0.pt.trace.json",
        "rank1.pt.trace.json",
        MANIFEST,
    ]


def test_folders_of_documents_are_refused(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/letter.txt").write_text("dear")
    with pytest.raises(UnknownFormatError):
        scrub(tmp_path / "documents", tmp_path / "clean")
    assert not (tmp_path / "clean").exists()


def test_only_what_scrub_wrote_is_replaced(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    scrub(folder, tmp_path / "clean")
    with pytest.raises(OutputExistsError):
        scrub(folder, tmp_path / "clean")
    scrub(folder, tmp_path / "clean", force=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/x").write_text("x")
    with pytest.raises(OutputExistsError):
        scrub(folder, tmp_path / "mine", force=True)


def test_secrets_of_a_source_are_taken_out_of_tables_made_of_it(tmp_path: Path) -> None:
    source = tmp_path / "report.sqlite"
    build(source)
    known = secrets_in(source)
    convert(source, tmp_path / "tables")
    (tmp_path / "clean").mkdir()
    _, secrets, size = scrub_folder(tmp_path / "tables", tmp_path / "clean", known)
    assert secrets >= 3
    assert size > 100
    redactor = Redactor.of(known)
    assert not redactor.holds(everything(tmp_path / "clean").encode())


def test_reports_tell_the_command_line_in_their_bytes(tmp_path: Path) -> None:
    long = "x" * 130 + "-9"
    arguments = ["/usr/bin/python", "train.py", "--password", "hunter2-zz", f"--name={long}", "-v", "--lr", "0.1"]
    fields = b"".join(b"Z" + length(len(argument)) + argument.encode() for argument in arguments)
    (tmp_path / "r.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 1.\n\x12\x06" + fields + b"b\x0e/tmp")
    assert {secret.text.decode() for secret in secrets_in(tmp_path / "r.nsys-rep")} == {"hunter2-zz", long}


def length(size: int) -> bytes:
    """Return a length as protobuf writes it."""
    return bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])


def test_reports_tell_the_environment_in_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "r.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 1.\n" + ENVIRONMENT)
    assert {TOKEN.encode(), b"gpu-node-17", b"adalove"} <= {
        secret.text for secret in secrets_in(tmp_path / "r.nsys-rep")
    }
    (tmp_path / "empty").write_bytes(b"")
    assert secrets_in(tmp_path / "empty") == ()
