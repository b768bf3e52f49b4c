"""The reader for each file, and the message for files without a reader."""

import gzip
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.nsys.database import build, kernel, to_parquet
from traceviz.core.errors import UnknownFormatError, UsageError
from traceviz.parsers.base import HEAD_BYTES, Match, Reader
from traceviz.parsers.registry import READERS, identify
from traceviz.testing import ReaderContract
from traceviz.trace.tables import TraceTables, save

LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:a1c2\nsize 552960\n"
MAGICS = [
    b"",
    b"SQLite format 3\0",
    b"NVIDIA Tegra Profiler Report ",
    b"U3w[END]NVIDIA Nsight System Stream 2022.4.2.1-df9881f!",
    LFS_POINTER,
]


def refusal(path: Path) -> str:
    with pytest.raises(UnknownFormatError) as caught:
        identify(path)
    return str(caught.value)


def test_readers_are_sorted_and_have_distinct_formats():
    formats = [reader.format for reader in READERS]
    assert formats == sorted(formats)
    assert len(set(formats)) == len(formats) >= 11
    assert all(reader.title for reader in READERS)


def test_content_decides_and_not_the_suffix(tmp_path):
    path = build(tmp_path / "report.nsys-rep", {})
    assert identify(path).format == "nsys-sqlite"


def test_folders_are_told_apart(tmp_path):
    export = to_parquet(build(tmp_path / "x.sqlite", {}), tmp_path / "export")
    save(TraceTables({}), tmp_path / "saved")
    assert identify(export).format == "nsys-parquet"
    assert identify(tmp_path / "saved").format == "traceviz"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty file"),
        (LFS_POINTER, "git-lfs pointer, not the trace. Run `git lfs pull`"),
        (b"hello\n", "text file"),
        ("déjà vu\n".encode(), "text file"),
        (b"\x00\x01\x02\xff", "first bytes"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"PAR1....PAR1", "Parquet file"),
        (b"SQLite format 3\x00..CREATE TABLE rocpd_string", "database of rocpd"),
        (b'{"rocprofiler-sdk-tool": [{}]}', "JSON of rocprofv3"),
        (b'"Name","Calls","TotalDurationNs","AverageNs"\n', "CSV file of rocprof"),
        (b"a,Kernel Name\nb,Start_Timestamp", "text file"),
        (pickle.dumps({"segments": [], "device_traces": []}), "memory snapshot of PyTorch"),
        (pickle.dumps({"loss": [1.5]}), "Python pickle"),
        (b"\x80\x81abc\x00\xff", "no format"),
        (b"PERFILE2\x68\x00", "Linux perf"),
        (b"=== Device Timing Summary ===\n\n", "unitrace"),
        (b"== L0 Backend ==\n\nTotal Execution Time (ns): 329489\n", "unitrace"),
        (b"QDSTRM\0\1\xf9", "QdstrmImporter -i FILE.qdstrm"),
        (b"NVR\0\x10\x02", "Nsight Compute (.ncu-rep)"),
        (b'{"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}', "profile of speedscope"),
        (bytes(range(256)).decode(errors="replace").encode(), "a binary file that was copied as text"),
        ("{}\ufffd\ufffd\ufffd".encode() * 9, "JSON, but no trace"),
        (
            b'{"memoryProfilePerAllocator": {"GPU_0_bfc": {}}, "memoryIds": ["GPU_0_bfc"]}',
            "memory profile of TensorFlow",
        ),
        (gzip.compress(b'{"numHosts": 1, "memoryProfilePerAllocator": {}}', mtime=0), "memory profile of TensorFlow"),
        (b"timestamp, name, utilization.gpu [%], power.draw [W]\n", "output of nvidia-smi"),
        (b"# gpu    pwr  gtemp  mtemp     sm    mem\n", "output of nvidia-smi"),
        (b"Time (%),Total Time (ns),Instances,Avg (ns),Name\n", "nsys stats printed"),
        (b"\n ** CUDA GPU Kernel Summary:\n\n Time (%)  Total Time (ns)  Instances  Name\n", "nsys stats printed"),
        (b"Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n", "table of Ascend's profiler"),
        (b"SQLite format 3\0..CREATE TABLE COMPUTE_TASK_INFO (name INTEGER)", "database of Ascend's profiler"),
        ('{"traceEvents": []}'.encode("utf-16"), "text in UTF-16"),
        ('[{"ph": "X"}]'.encode("utf-16-be"), "text in UTF-16"),
        (b"<!DOCTYPE html><html>", "a page or a picture"),
        (b"<?xml version='1.0'?>\n<svg width='10'>", "a page or a picture"),
        (b"{\x28\xda\x01~\0\xff", "no format"),
        (b'{"schema": "1.1.0-chakra.0.0.4", "pid": 5, "nodes": []}', "execution trace of PyTorch"),
    ],
)
def test_unknown_files_are_described(tmp_path, content, message):
    path = tmp_path / "trace"
    path.write_bytes(content)
    assert message in refusal(path)


def test_database_of_something_else_is_described(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection:
        connection.execute("CREATE TABLE StringTable (_id_ INTEGER, value TEXT)")
        connection.commit()
    assert "SQLite database, but not one that nsys exported" in refusal(tmp_path / "x.sqlite")


def test_a_trace_of_perfetto_is_known_by_its_name(tmp_path):
    (tmp_path / "x.pftrace").write_bytes(b"\x0a\x05\x08\x01\x10\x02\x18")
    assert "trace of Perfetto" in refusal(tmp_path / "x.pftrace")


def test_folder_without_a_manifest_is_described(tmp_path):
    assert "empty folder" in refusal(tmp_path)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "kernels.parquet")
    assert "without a manifest.json" in refusal(tmp_path)
    (tmp_path / "kernels.parquet").rename(tmp_path / "notes.txt")
    assert "it holds notes.txt" in refusal(tmp_path)


def test_a_folder_of_tables_whose_manifest_names_its_kind_twice_has_a_damaged_manifest(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "kernels.parquet")
    (tmp_path / "manifest.json").write_text('{"kind": 1, "kind": "traceviz.trace"}')
    assert "manifest.json is damaged" in refusal(tmp_path)
    assert "traceviz convert TRACE" in refusal(tmp_path)


def test_missing_path_is_said_to_be_missing(tmp_path):
    assert "No such file" in refusal(tmp_path / "gone.nsys-rep")


def test_a_named_format_is_taken_and_an_unknown_one_refused(tmp_path):
    path = build(tmp_path / "x", {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel(1, 2)]})
    assert identify(path, "nsys-rep").format == "nsys-rep"
    with pytest.raises(UsageError, match="nsys-sqlite"):
        identify(path, "nsys")


class _Eager(Reader):
    format = "eager"
    title = "claims everything"
    suffixes = ()

    def __init__(self, match: Match) -> None:
        self.answer = match

    def sniff(self, head, path):
        return self.answer

    def read(self, path, options):
        raise NotImplementedError


@pytest.fixture
def register():
    yield READERS.register
    READERS.unregister("eager")


def test_a_tie_names_the_candidates_and_the_option(tmp_path, register):
    path = build(tmp_path / "x.sqlite", {})
    register(_Eager(Match.YES))
    message = refusal(path)
    assert "eager, nsys-sqlite" in message
    assert "--reader" in message


def test_the_surest_reader_wins(tmp_path, register):
    path = build(tmp_path / "x.sqlite", {})
    register(_Eager(Match.MAYBE))
    assert identify(path).format == "nsys-sqlite"


@given(magic=st.sampled_from(MAGICS), tail=st.binary(max_size=300))
def test_sniffing_is_total(tmp_path_factory, magic, tail):
    path = tmp_path_factory.getbasetemp() / "random"
    path.write_bytes(magic + tail)
    head = path.read_bytes()[:HEAD_BYTES]
    for reader in READERS:
        assert reader.sniff(head, path) in set(Match)
        assert reader.sniff(head, path.parent / "gone") in set(Match)
        assert reader.sniff(head, Path("nul\0inside")) in set(Match)


SAMPLES = {
    "kineto": "kineto/repaired.pt.trace.json.gz",
    "nsys-sqlite": "synthetic/input_bound.sqlite",
}


class TestEveryReader(ReaderContract):
    @pytest.fixture(params=READERS.all(), ids=lambda reader: reader.format, autouse=True)
    def _reader_and_samples(self, request, samples):
        self.reader = request.param
        self.samples = [samples / SAMPLES[self.reader.format]] if self.reader.format in SAMPLES else []
