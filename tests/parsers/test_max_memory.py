"""The needs of a trace are compared with free and with allowed memory before it is all in memory."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import run
from tests.support.measured import measured
from traceviz import api
from traceviz.core.errors import DamagedTraceError, OutOfMemoryError
from traceviz.core.process import memory
from traceviz.core.process.memory import Allowance, Room, Watch

GIGABYTE = 10**9


@pytest.fixture
def has(monkeypatch):
    """Set what the process has and what is free, in bytes."""

    def give(resident, more):
        monkeypatch.setattr(memory, "resident", lambda: resident)
        monkeypatch.setattr(memory, "free", lambda: Room(more, more, f"this machine has {more} B free"))

    return give


@pytest.mark.parametrize(
    ("needed", "free", "most", "refused"),
    [
        (600, 10_000, 1000, False),
        (601, 10_000, 1000, True),
        (601, 10, 1001, False),  # who allows it knows better than an estimate
        (1000, 1000, None, False),
        (1100, 1000, None, False),
        (1101, 1000, None, True),
    ],
)
def test_work_is_refused_where_it_needs_more_than_is_allowed_or_clearly_more_than_is_free(
    needed, free, most, refused, has
):
    has(400, free)
    if refused:
        with pytest.raises(OutOfMemoryError, match=f"x.json needs about {(needed + 400) / 1000:.2f} kB of memory"):
            Allowance(most).check(needed, "x.json")
    else:
        Allowance(most).check(needed, "x.json")


def test_who_needs_nothing_more_does_not_ask_the_system(monkeypatch):
    asked = []
    monkeypatch.setattr("traceviz.core.process.memory.free", lambda: asked.append(1))
    Allowance().check(0, "x.json")
    assert asked == []
    Allowance().check(1, "x.json")
    assert asked == [1]


def test_what_the_rest_of_a_stage_takes_is_told_from_what_its_beginning_took(has):
    watch = Watch(Allowance(6 * GIGABYTE), "x.json")
    has(GIGABYTE, 0)
    watch.see("decode", 0, 100)
    has(2 * GIGABYTE, 0)
    watch.see("decode", 4, 100)  # too early to judge
    has(2 * GIGABYTE + 64 * 10**6, 0)
    watch.see("decode", 25, 100)
    with pytest.raises(OutOfMemoryError) as raised:
        watch.see("decode", 10, 100)
    assert (raised.value.what, raised.value.why) == (
        "x.json needs about 11.1 GB of memory.",
        "--max-memory allows 6.00 GB.",
    )
    watch.see("another", 10, 100)


@pytest.mark.parametrize(
    "name",
    [
        "kineto/repaired.pt.trace.json.gz",
        "nsys/nvtx_loop.sqlite",
        "synthetic/gpu_jax_healthy.xplane.pb",
        "synthetic/nvprof_trace.csv",
        "synthetic/nvprof_torch_input_bound.nvvp",
    ],
)
def test_every_format_compares_what_it_takes_with_what_is_allowed(name, samples, has):
    has(400, 0)
    with pytest.raises(OutOfMemoryError, match="--max-memory allows 300 B"):
        api.open_trace(samples / name, read=api.ReadOptions(max_memory=300))
    assert api.open_trace(samples / name, read=api.ReadOptions(max_memory=GIGABYTE)).rows("run") == 1


def test_commands_refuse_what_is_beyond_max_memory_with_the_figure_and_exit_code_3(samples, has, tmp_path):
    has(400, 0)
    sample = samples / "kineto" / "repaired.pt.trace.json.gz"
    for command in (
        ("report", sample),
        ("doctor", sample),
        ("convert", sample, "-o", tmp_path / "a"),
        ("compare", sample, sample),
    ):
        done = run(*command, "--max-memory", "300B")
        assert (done.returncode, "needs about" in done.stderr, "allows 300 B" in done.stderr) == (3, True, True), (
            command
        )
    assert not (tmp_path / "a").exists()


def test_a_parquet_page_of_a_few_bytes_that_claims_a_billion_rows_is_refused_by_its_footer(samples, tmp_path, has):
    folder = tmp_path / "a"
    api.convert(samples / "kineto" / "repaired.pt.trace.json.gz", folder)
    before = pq.read_table(folder / "host_ops.parquet")
    rows = 3_000_000
    column = pa.nulls(rows, pa.int64()).fill_null(5)
    table = pa.table(
        [column if kind == pa.int64() else pa.nulls(rows, kind) for kind in before.schema.types], before.schema.names
    )
    pq.write_table(table, folder / "host_ops.parquet", compression="zstd")
    assert (folder / "host_ops.parquet").stat().st_size < 200_000
    manifest = (folder / "manifest.json").read_text().replace(f'"host_ops": {before.num_rows}', f'"host_ops": {rows}')
    (folder / "manifest.json").write_text(manifest)
    has(400, 0)
    with pytest.raises(OutOfMemoryError, match="Table host_ops of a needs about"):
        api.open_trace(folder, read=api.ReadOptions(max_memory=10**8))


def test_a_gzip_file_that_inflates_to_far_more_than_a_profile_does_is_refused(tmp_path):
    head = b"\x0a\x10\x12\x0e/host:metadata\0"
    path = tmp_path / "a.xplane.pb.gz"
    path.write_bytes(gzip.compress(head) + gzip.compress(bytes(2**20)) * 300)
    with pytest.raises(DamagedTraceError, match=r"holds more than 64\.0 MB, which no profile does"):
        api.open_trace(path, read=api.ReadOptions(reader="xplane"))


@pytest.mark.process
def test_a_large_trace_is_refused_before_it_takes_what_is_not_allowed(tmp_path):
    event = b'{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "name": "a"},'
    path = tmp_path / "a.json"
    path.write_bytes(b'{"schemaVersion": 1, "traceEvents": [' + event * 2_000_000 + b"{}]}")
    done = measured("report", path, "--max-memory", "150MB")
    assert (done.code, "a.json needs about" in done.err) == (3, True)
    assert done.peak_bytes < 300 * 10**6  # 150 to 200 MB, without memory of imports; read whole it takes 600 MB
