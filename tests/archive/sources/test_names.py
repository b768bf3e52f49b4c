"""Names that are no UTF-8, or that a terminal would obey: such traces are added like others."""

import gzip
import io
import os
import tarfile

import polars as pl
import pytest

from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import LocalRunner, SerialRunner
from traceviz.archive.sources.names import MOST_PART, plain_path

BYTE = os.fsdecode(b"\xe9")
KINETO = "synthetic/torch_healthy.pt.trace.json.gz"
SAMPLES = {
    f"caf{BYTE}.sqlite": "synthetic/launch_bound.sqlite",
    f"{BYTE}.xplane.pb": "synthetic/tpu_infeed_wait.xplane.pb",
    f"{BYTE}{BYTE}.nvvp": "synthetic/nvprof_torch_input_bound.nvvp",
    "red\x1b[31m\n.pt.trace.json.gz": KINETO,
}
SHOWN = {
    "caf\\xe9.sqlite",
    "\\xe9.xplane.pb",
    "\\xe9\\xe9.nvvp",
    "red\\x1b[31m\\n.pt.trace.json.gz",
    "\\xe9.pt.trace.json",
}


@pytest.fixture
def sources(samples, tmp_path):
    """Traces under such names, in a folder of such a name, and in a tar file."""
    folder = tmp_path / f"so{BYTE}urces"
    folder.mkdir()
    for name, sample in SAMPLES.items():
        (folder / name).write_bytes((samples / sample).read_bytes())
    content = gzip.decompress((samples / KINETO).read_bytes())
    with tarfile.open(folder / "t.tar", "w", errors="surrogateescape") as file:
        member = tarfile.TarInfo(f"sub{BYTE}/{BYTE}.pt.trace.json")
        member.size = len(content)
        file.addfile(member, io.BytesIO(content))
    (folder / f"bad{BYTE}\n.sqlite").write_bytes(b"no trace")
    return folder


@pytest.mark.parametrize(
    ("runner", "keep_private"),
    [(SerialRunner(), False), (SerialRunner(), True), pytest.param(LocalRunner(1), False, marks=pytest.mark.slow)],
    ids=str,
)
def test_traces_of_any_name_are_added_and_their_names_can_be_shown(sources, tmp_path, keep_private, runner):
    archive = Archive(tmp_path / "archive")
    done = archive.add(sources, keep_private=keep_private, runner=runner)
    assert (done.added, done.refused) == (5, ())
    (bad,) = done.quarantined
    assert bad.source.endswith("bad\\xe9\\n.sqlite")
    assert bad.error.startswith("unknown-format: bad\\xe9\\n.sqlite is not a trace")
    rows = archive.rows()
    ready = rows.filter(pl.col("state") == "ready")
    assert {name.rpartition("/")[2] for name in ready["source"]} == SHOWN
    assert all(text.isprintable() for name in ("source", "error", "job") for text in rows[name].drop_nulls())
    assert archive.add(sources, runner=SerialRunner()).known == 5
    assert archive.verify().faults == ()


def test_one_trace_that_is_named_in_a_folder_of_such_a_name_is_added(sources, tmp_path):
    archive = Archive(tmp_path / "archive")
    assert archive.add(sources / f"caf{BYTE}.sqlite", runner=SerialRunner()).added == 1


def test_a_plain_path_is_itself_and_any_other_a_link_that_keeps_the_suffix_and_what_lies_beside(tmp_path):
    plain = tmp_path / "é.sqlite"
    assert plain_path(plain, tmp_path) is plain
    report, export = tmp_path / f"{BYTE}.nsys-rep", tmp_path / f"{BYTE}.sqlite"
    report.write_bytes(b"report")
    export.write_bytes(b"export")
    link = plain_path(report, tmp_path, [export])
    assert (link.name, link.read_bytes()) == ("\\xe9.nsys-rep", b"report")
    assert link.with_suffix(".sqlite").read_bytes() == b"export"
    assert not plain_path(report, tmp_path, [tmp_path / "none.sqlite"]).with_suffix(".sqlite").exists()
    longest = tmp_path / (BYTE * (MOST_PART - 7) + ".sqlite")
    longest.write_bytes(b"long")
    link = plain_path(longest, tmp_path)
    assert (len(link.name), link.suffix, link.read_bytes()) == (MOST_PART, ".sqlite", b"long")
