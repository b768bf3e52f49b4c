"""Public captures of TensorFlow and JAX: what is in them is read to the nanosecond, and reported."""

import json

import pytest

from tests.support.command import run
from traceviz import api

T4 = "ecbme4040__e4040-2022fall-assign2-yg2820__2022_11_04_21_26_12__instance-ecbm.xplane.pb"
MACOS = "ecbme4040__e4040-2022fall-assign2-yg2820__2022_10_31_19_09_08__gaoyihaodeMacBook-Pro.local.xplane.pb"
MI300 = "AMD-AGI__TraceLens__chi-mi300x-013.ord.vultr.cpe.ice.amd.com.xplane.pb"
TPU = "openxla__xprof__2cc1243__tpu_inference_2.xplane.pb"
WORKERS = "tensorflow__profiler__34.83.195.179_6003.xplane.pb"
CAPTURES = [T4, MACOS, MI300, TPU, WORKERS]


@pytest.fixture(scope="module")
def tables_of(public_traces):
    """Tables by file name, each read once."""
    made = {}

    def read(name):
        if name not in made:
            made[name] = api.open_trace(public_traces / "xplane" / name)
        return made[name]

    return read


def total(tables, table):
    return int(tables.arrow(table)["dur_ns"].to_numpy().sum())


@pytest.mark.parametrize(
    ("name", "table", "count", "total_ns"),
    [
        (T4, "kernels", 116, 5_673_352),
        (T4, "memcpy", 8, 90_335),
        (MI300, "kernels", 25, 3_586_493),
        (MI300, "memcpy", 53, 889_028),
        (WORKERS, "kernels", 1_330, 29_690_748),
        (WORKERS, "memcpy", 226, 471_357),
    ],
)
def test_device_work_is_read_to_the_nanosecond(tables_of, name, table, count, total_ns):
    tables = tables_of(name)
    assert (tables.rows(table), total(tables, table)) == (count, total_ns)


def test_ops_of_tpus_add_up_to_their_picoseconds(tables_of):
    tables = tables_of(TPU)
    assert tables.rows("kernels") == 6_013
    # Every start and end is cut off to a nanosecond: one op more or less than one off.
    assert abs(total(tables, "kernels") - 315_122_705_519) < 6_013
    assert tables.rows("devices") == 4


def by_name(rows):
    """Return occurrences and total time by name of rows that name a kernel more than once."""
    totals: dict[str, tuple[int, int]] = {}
    for name, count, spent in rows:
        before = totals.get(name, (0, 0))
        totals[name] = (before[0] + count, before[1] + spent)
    return totals


def test_kernels_by_name_equal_those_of_tensorboard(tables_of, public_traces):
    path = public_traces / "expected" / "xplane" / f"{T4}.json"
    theirs = by_name(json.loads(path.read_text(encoding="utf-8"))["kernels"]["rows"])
    kernels = tables_of(T4).arrow("kernels").select(["name", "dur_ns"]).to_pylist()
    assert by_name((row["name"], 1, row["dur_ns"]) for row in kernels) == theirs
    assert len(theirs) == 56


def test_the_device_of_the_jax_capture_is_idle_as_long_as_tracelens_says(tables_of):
    kernels = tables_of(MI300).arrow("kernels").to_pandas().sort_values("start_ns")
    ends = kernels["start_ns"] + kernels["dur_ns"]
    assert (kernels["start_ns"].iloc[1:].to_numpy() >= ends.iloc[:-1].to_numpy()).all()
    span = int(ends.max() - kernels["start_ns"].min())
    assert (span, span - int(kernels["dur_ns"].sum())) == (15_761_301, 12_174_808)


def test_work_lies_on_the_devices_that_did_it(tables_of):
    tables = tables_of(MI300)
    assert tables.rows("devices") == 8
    assert set(tables.arrow("kernels")["device_id"].to_pylist()) == {7}
    assert set(tables.arrow("memcpy")["device_id"].to_pylist()) == {0}
    registers = tables.arrow("kernels")["registers_per_thread"]
    assert registers.null_count == 25


@pytest.mark.parametrize(
    ("name", "marker", "step_ns"),
    [(T4, "EagerKernelExecute", 9_008_359), (MACOS, "EagerKernelExecute", 78_792_000)],
)
def test_the_step_that_the_profiler_found_lasts_as_long_as_it_says(tables_of, name, marker, step_ns):
    steps = tables_of(name).arrow("steps").select(["marker", "dur_ns"]).to_pylist()
    assert steps == [{"marker": marker, "dur_ns": step_ns}]


@pytest.mark.parametrize("name", CAPTURES)
def test_calls_match_the_work_that_they_launched(tables_of, name):
    tables = tables_of(name)
    if "cuda_api" not in tables:
        pytest.skip("no driver calls in this capture")
    launched = {
        (row["process_id"], row["correlation_id"])
        for table in ("kernels", "memcpy", "memset")
        for row in tables.arrow(table).select(["process_id", "correlation_id"]).to_pylist()
    }
    calls = {
        (row["process_id"], row["correlation_id"])
        for row in tables.arrow("cuda_api").select(["process_id", "correlation_id"]).to_pylist()
    }
    assert len(launched - calls) <= 0.01 * len(launched)


def test_a_report_names_no_host(public_traces, tmp_path):
    copy = tmp_path / "capture.xplane.pb"
    copy.write_bytes((public_traces / "xplane" / T4).read_bytes())
    text = api.to_text(api.report_on(copy), "json")
    assert len(text) > 1_000
    assert "instance-ecbm" not in text


def test_the_command_line_reads_a_run_of_a_log_folder(public_traces, tmp_path):
    for run_name, name in (("2022_11_04_21_26_12", T4), ("2022_10_31_19_09_08", MACOS)):
        folder = tmp_path / "logs" / "plugins" / "profile" / run_name
        folder.mkdir(parents=True)
        (folder / "host.xplane.pb").write_bytes((public_traces / "xplane" / name).read_bytes())

    def kernels(*options):
        completed = run("report", tmp_path / "logs", "--section", "kernels", *options)
        return completed.returncode, completed.stdout

    newest = kernels()
    assert newest[0] == 0
    assert "5.67 ms" in newest[1]
    older = kernels("--run", "2022_10_31_19_09_08")
    assert (older[0], "5.67 ms" in older[1]) == (0, False)
    assert kernels("--run", "2023")[0] == 2
