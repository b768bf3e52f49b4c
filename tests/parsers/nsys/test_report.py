"""Reports and streams: their processing by the installed nsys, and its failures."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.parsers.nsys.database import build, kernel, to_parquet
from tests.parsers.nsys.fake import REPORT, fake_nsys
from tests.support.real_nsys import recorded
from tests.support.traces import read
from traceviz.core import nsys_program
from traceviz.core.errors import DamagedTraceError, MissingToolError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.report import recorded_version
from traceviz.parsers.registry import identify

pytestmark = pytest.mark.process

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
OLD_REPORT = b"NVIDIA Tegra Profiler Report 1.\n\x0bLocal (CLI) ... 2022.2.1.31-5fe97ab ..."
STREAM = b"U3w[END]NVIDIA Nsight System Stream 2022.4.2.1-df9881f!\n"


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Temporary folders of readers are made here, and must be gone in the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def no_nsys(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(nsys_program.OVERRIDE, raising=False)
    monkeypatch.setattr(nsys_program, "INSTALLED_AT", ())
    monkeypatch.setattr(nsys_program, "IMPORTER_INSTALLED_AT", ())


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(REPORT)
    return path


def database(folder: Path) -> Path:
    rows = [kernel(index, index + 1) for index in range(3_000)]
    return build(folder / "good.sqlite", {KERNELS: rows}, names=["k"])


def test_export_is_read_with_its_route_and_the_version_that_recorded(tmp_path, monkeypatch, report):
    seen = []
    good = database(tmp_path)
    fake_nsys(tmp_path, monkeypatch, f"shutil.copy({str(good)!r}, output)")
    tables = read(report, progress=lambda *call: seen.append(call))
    assert tables.rows("kernels") == 3_000
    assert tables.run_facts()["reader"] == "nsys-rep, nsys export --type=sqlite (nsys 2022.4.2.1)"
    assert tables.run_facts()["producer_version"] == "2024.6.2.25, exported by 1.2.3.4"
    assert ("nsys export", 100, 100) in seen


def test_parquet_is_exported_where_nsys_can(tmp_path, monkeypatch, report):
    folder = to_parquet(database(tmp_path), tmp_path / "parquet")
    fake_nsys(tmp_path, monkeypatch, f"shutil.copytree({str(folder)!r}, output)", extra="parquetdir")
    tables = read(report)
    assert tables.rows("kernels") == 3_000
    assert "--type=parquetdir" in tables.run_facts()["reader"]


def test_missing_nsys_names_the_command_to_run_elsewhere(no_nsys, report):
    with pytest.raises(MissingToolError) as caught:
        read(report)
    assert "2024.6.2.25" in caught.value.what
    assert "not installed" in caught.value.why
    assert "nsys export --type sqlite --output run.sqlite run.nsys-rep" in caught.value.fix


def test_missing_nsys_is_no_matter_where_an_export_lies_beside_the_report(no_nsys, report):
    build(report.with_suffix(".sqlite"), {KERNELS: [kernel(1, 2)]}, names=["k"])
    tables = read(report)
    assert tables.rows("kernels") == 1
    (note,) = tables.arrow("notes").to_pylist()
    assert note["code"] == "sqlite-beside-report"
    assert "run.sqlite" in note["message"]


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("output", ["Version number is invalid: 2024@6@2@25", "terminate: ProtobufParseException"])
def test_newer_report_names_both_versions(tmp_path, monkeypatch, report, output, status):
    fake_nsys(tmp_path, monkeypatch, f"output.write_bytes(b'half')\nprint({output!r})\nsys.exit({status})")
    with pytest.raises(MissingToolError) as caught:
        read(report)
    assert "2024.6.2.25" in caught.value.what
    assert "2022.4.2.1 is too old" in caught.value.why
    assert "nsys export --type sqlite" in caught.value.fix


def test_newer_report_is_read_from_the_export_beside_it(tmp_path, monkeypatch, report):
    fake_nsys(tmp_path, monkeypatch, "print('Version number is invalid')\nsys.exit(1)")
    build(report.with_suffix(".sqlite"), {KERNELS: [kernel(1, 2)]}, names=["k"])
    assert read(report).arrow("notes")["code"].to_pylist() == ["sqlite-beside-report"]


@pytest.mark.parametrize("status", [0, 1])
def test_half_an_export_is_not_taken_for_a_whole_one(tmp_path, monkeypatch, report, status):
    good = database(tmp_path)
    half = f"content = pathlib.Path({str(good)!r}).read_bytes()\noutput.write_bytes(content[: len(content) // 2])"
    fake_nsys(tmp_path, monkeypatch, f"{half}\nprint('disk full at /home/me')\nsys.exit({status})")
    with pytest.raises(DamagedTraceError) as caught:
        read(report)
    assert caught.value.why == "nsys says: disk full at [path]"
    assert not report.with_suffix(".sqlite").exists()


def test_success_without_an_export_is_a_failure(tmp_path, monkeypatch, report):
    fake_nsys(tmp_path, monkeypatch, "pass")
    with pytest.raises(DamagedTraceError, match="cannot be exported"):
        read(report)


def test_export_with_an_open_journal_is_a_failure(tmp_path, monkeypatch, report):
    good = database(tmp_path)
    journal = "pathlib.Path(str(output) + '-journal').write_bytes(b'x')"
    fake_nsys(tmp_path, monkeypatch, f"shutil.copy({str(good)!r}, output)\n{journal}")
    with pytest.raises(DamagedTraceError):
        read(report)


def test_interrupt_during_the_export_kills_nsys_and_leaves_nothing(tmp_path, monkeypatch, report, scratch):
    mark = tmp_path / "nsys-pid"
    tell = f"pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))"
    body = f"import os\noutput.write_bytes(b'half')\n{tell}\ntime.sleep(60)"
    fake_nsys(tmp_path, monkeypatch, body)
    program = (
        "import sys, tempfile\nfrom pathlib import Path\nfrom traceviz.parsers.base import ReadRequest\n"
        "from traceviz.parsers.registry import identify\n"
        f"tempfile.tempdir = {str(scratch)!r}\npath = Path({str(report)!r})\n"
        "list(identify(path).read(path, ReadRequest()))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not mark.exists() or not mark.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(list(scratch.iterdir())) == 1
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=120)
    assert b"KeyboardInterrupt" in errors
    assert list(scratch.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_a_reader_that_is_abandoned_cleans_up(tmp_path, monkeypatch, report, scratch):
    fake_nsys(tmp_path, monkeypatch, f"shutil.copy({str(database(tmp_path))!r}, output)")
    stream = identify(report).read(report, ReadRequest())
    next(stream)
    assert len(list(scratch.iterdir())) == 1
    stream.close()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "version"),
    [(REPORT, "2024.6.2.25"), (OLD_REPORT, "2022.2.1.31"), (STREAM, "2022.4.2.1"), (b"NVIDIA Tegra Profiler", None)],
)
def test_recorded_version_is_read_from_the_bytes(tmp_path, content, version):
    path = tmp_path / "x"
    path.write_bytes(content)
    assert recorded_version(path) == version


def test_stream_without_tools_names_what_is_missing(tmp_path, no_nsys):
    path = tmp_path / "run.qdstrm"
    path.write_bytes(STREAM)
    assert identify(path).format == "nsys-qdstrm"
    with pytest.raises(MissingToolError, match=r"QdstrmImporter -i run\.qdstrm"):
        read(path)


def test_stream_is_imported_then_exported(tmp_path, monkeypatch):
    path = tmp_path / "run.qdstrm"
    path.write_bytes(STREAM)
    fake_nsys(tmp_path, monkeypatch, f"shutil.copy({str(database(tmp_path))!r}, output)")
    importer = tmp_path / "QdstrmImporter"
    importer.write_text(
        f"#!{sys.executable}\nimport sys\nopen(sys.argv[4], 'wb').write(open(sys.argv[2], 'rb').read())\n"
    )
    importer.chmod(0o755)
    monkeypatch.setattr(nsys_program, "find_importer", lambda: importer)
    tables = read(path)
    assert tables.rows("kernels") == 3_000
    assert tables.run_facts()["reader"].startswith("nsys-qdstrm, QdstrmImporter, nsys export")


def test_damaged_stream_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.qdstrm"
    path.write_bytes(STREAM)
    fake_nsys(tmp_path, monkeypatch, "pass")
    importer = tmp_path / "QdstrmImporter"
    importer.write_text(f"#!{sys.executable}\nprint('Import Failed')\nraise SystemExit(1)\n")
    importer.chmod(0o755)
    monkeypatch.setattr(nsys_program, "find_importer", lambda: importer)
    with pytest.raises(DamagedTraceError, match="Import Failed"):
        read(path)


NSYS = nsys_program.find_nsys()
needs_nsys = pytest.mark.skipif(NSYS is None, reason="nsys is not installed")


@needs_nsys
def test_installed_nsys_calls_garbage_damaged(report):
    report.write_bytes(OLD_REPORT)
    with pytest.raises((DamagedTraceError, MissingToolError), match=r"run\.nsys-rep"):
        read(report)


@needs_nsys
@pytest.mark.skipif(not os.environ.get("TRACEVIZ_TRACES"), reason="TRACEVIZ_TRACES names no folder of public traces")
def test_installed_nsys_is_too_old_for_a_report_of_2024(tmp_path):
    if NSYS is not None and NSYS.version >= "2024.6":
        pytest.skip("the installed nsys is new enough")
    source = Path(os.environ["TRACEVIZ_TRACES"]) / "nsys" / "NVIDIA__Fuser__64ee035__report1.nsys-rep"
    path = Path(shutil.copy(source, tmp_path / "new.nsys-rep"))
    with pytest.raises(MissingToolError) as caught:
        read(path)
    assert "2024.6.2.25" in caught.value.what
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["new.nsys-rep", "scratch"]


@needs_nsys
@pytest.mark.skipif(nsys_program.find_importer() is None, reason="QdstrmImporter is not installed")
def test_a_real_stream_of_this_machine_is_read(tmp_path):
    pytest.importorskip("nvtx")
    program = tmp_path / "program.py"
    program.write_text(
        "import nvtx\nfor i in range(3):\n    with nvtx.annotate('step', domain='demo'):\n        pass\n"
    )
    report, _ = recorded([sys.executable, program], tmp_path, "--trace=nvtx")
    if report is None:
        pytest.skip("nsys cannot record here")
    tables = read(report)
    steps = tables.arrow("nvtx").to_pylist()
    if not steps:
        pytest.skip("this nvtx and nsys record no ranges together")
    assert [(row["name"], row["domain"], row["kind"]) for row in steps] == [("step", "demo", "push_pop")] * 3
    assert tables.run_facts()["reader"].startswith("nsys-qdstrm" if report.suffix == ".qdstrm" else "nsys-rep")


def test_an_nsys_that_the_user_names_wrongly_is_said(monkeypatch):
    monkeypatch.setenv(nsys_program.OVERRIDE, "/no/such/nsys")
    with pytest.raises(MissingToolError, match="TRACEVIZ_NSYS names /no/such/nsys, which is not a program"):
        nsys_program.find_nsys()


def test_the_newest_version_is_a_number_and_no_text():
    folders = ["/opt/nsys/2024.9.1/bin", "/opt/nsys/2024.10.1/bin", "/opt/nsys/2023.4.4/bin"]
    assert max(folders, key=nsys_program.version_in) == "/opt/nsys/2024.10.1/bin"
