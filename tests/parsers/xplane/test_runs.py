"""Log folders: the newest run is read unless another is requested, and the hosts of a run are its ranks."""

import gzip
import os
from pathlib import Path

import pytest

from tests.parsers.xplane.files import Unsigned, event, line, plane, space
from tests.parsers.xplane.traces import US, environment, gpu, host, notes, read, rows, training
from traceviz.core.errors import DamagedTraceError, UnknownFormatError, UsageError
from traceviz.parsers.registry import identify
from traceviz.parsers.shared.log_folders import find_runs

EARLY, LATE = "2024_01_01_10_00_00", "2024_01_02_09_00_00"


def put(logs: Path, run: str, content: bytes, name: str = "host.xplane.pb", below: str = "") -> Path:
    """Store a capture where the profiler stores it."""
    folder = logs / below / "plugins" / "profile" / run
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def logs(tmp_path):
    """Two runs: one of one step for training, a later one of three steps for validation."""
    put(tmp_path, EARLY, training(1), below="train")
    put(tmp_path, LATE, training(3), below="validation")
    (tmp_path / "train" / "events.out.tfevents.1.host").write_bytes(b"x")
    return tmp_path


def test_the_newest_run_is_read_and_the_others_are_named(logs):
    assert identify(logs).format == "xplane"
    tables = read(logs)
    assert tables.rows("steps") == 3
    assert notes(tables)["run-chosen"] == (
        "info",
        None,
        f"Run validation/{LATE} was read, the newest. Others: train/{EARLY} (--run NAME).",
    )


@pytest.mark.parametrize("name", [EARLY, f"train/{EARLY}"])
def test_a_run_can_be_chosen_by_its_name(logs, name):
    tables = read(logs, run=name)
    assert tables.rows("steps") == 1
    assert "as asked for" in notes(tables)["run-chosen"][2]


def test_an_unknown_run_lists_those_that_there_are(logs):
    with pytest.raises(UsageError, match=f"no run 'x'.*train/{EARLY}, validation/{LATE}"):
        read(logs, run="x")


def test_a_name_of_two_runs_is_not_guessed(tmp_path):
    put(tmp_path, EARLY, training(1), below="a")
    put(tmp_path, EARLY, training(2), below="b")
    with pytest.raises(UsageError, match=f"More than one run.*a/{EARLY}, b/{EARLY}"):
        read(tmp_path, run=EARLY)


def test_runs_without_timestamps_are_as_old_as_their_files(tmp_path):
    for name, age in (("second", 200), ("first", 100)):
        file = put(tmp_path, name, training(1)) / "host.xplane.pb"
        os.utime(file, (age, age))
    assert [run.name for run in find_runs(tmp_path)] == ["first", "second"]


@pytest.mark.parametrize(
    "below", ["", "train", "train/plugins", "train/plugins/profile", f"train/plugins/profile/{EARLY}"]
)
def test_any_folder_above_or_of_a_run_is_accepted(tmp_path, below):
    put(tmp_path, EARLY, training(2), below="train")
    assert identify(tmp_path / below).format == "xplane"
    assert read(tmp_path / below).rows("steps") == 2


def test_hosts_of_a_run_are_ranks_on_one_clock_with_groups_of_their_own(tmp_path):
    def capture(start: int) -> bytes:
        step = event("train", 0, 10 * US, {"step_num": 7, "_r": 1})
        work = gpu(line(13, event("k", US, US, {"correlation_id": Unsigned(1)}), name="Stream #13(Compute)"))
        return space(host(line(5, step, timestamp_ns=1_000)), work, environment(start))

    folder = put(tmp_path, EARLY, capture(1_000_000), "worker-b.xplane.pb")
    put(tmp_path, EARLY, capture(1_500_000), "worker-c.xplane.pb")
    tables = read(folder)
    assert rows(tables, "processes", "process_id", "pid", "name", "rank") == [(0, None, None, 0), (1, None, None, 1)]
    assert rows(tables, "steps", "process_id", "start_ns", "group_id", "thread_id") == [
        (0, 0, 0, 0),
        (1, 500_000, 1, 1),
    ]
    assert rows(tables, "devices", "device_id", "ordinal") == [(0, 0), (1, 0)]
    assert sorted(rows(tables, "kernels", "process_id", "device_id")) == [(0, 0), (1, 1)]
    assert "clocks-not-aligned" not in notes(tables)


def test_captures_of_different_times_in_one_folder_are_no_hosts_of_one_run(tmp_path):
    for name, begun in (("monday.xplane.pb", 5 * 10**15), ("friday.xplane.pb", 9 * 10**15)):
        times = {"profile_start_time": Unsigned(begun), "profile_stop_time": Unsigned(begun + 10**9)}
        stated = plane("Task Environment", stats=times)
        (tmp_path / name).write_bytes(space(host(line(1, event("train", 0, 5 * US))), stated))
    with pytest.raises(UsageError, match="not the hosts of one run") as caught:
        read(tmp_path)
    assert caught.value.fix == "Name one of them: friday.xplane.pb, monday.xplane.pb."


def test_a_compressed_empty_file_is_an_empty_capture(tmp_path):
    file = tmp_path / "host.xplane.pb.gz"
    file.write_bytes(gzip.compress(b""))
    with pytest.raises(DamagedTraceError, match="is empty"):
        read(file)


def test_hosts_that_do_not_say_when_they_began_each_start_at_zero(tmp_path):
    for name, start in (("a", 5_000), ("b", 90_000)):
        content = space(host(line(5, event("x", 0, US), timestamp_ns=start)))
        folder = put(tmp_path, EARLY, content, f"{name}.xplane.pb")
    tables = read(folder)
    assert rows(tables, "host_ops", "process_id", "start_ns", "op_id") == [(0, 0, 0), (1, 0, 1)]
    assert notes(tables)["clocks-not-aligned"][0] == "warning"


def test_a_host_whose_file_is_empty_is_missed_and_the_others_are_read(tmp_path):
    put(tmp_path, EARLY, b"", "a.xplane.pb")
    folder = put(tmp_path, EARLY, training(2), "b.xplane.pb")
    tables = read(folder)
    assert tables.rows("steps") == 2
    assert "over 2 GiB" in notes(tables)["hosts-missing"][2]


def test_a_run_of_empty_files_says_why(tmp_path):
    folder = put(tmp_path, EARLY, b"", "a.xplane.pb")
    with pytest.raises(DamagedTraceError, match="over 2 GiB"):
        read(folder)


@pytest.mark.parametrize(
    ("made", "why"),
    [("plugins/profile/2024", "holds no capture"), ("events.out.tfevents.17.host", "only what TensorBoard plots")],
)
def test_a_log_folder_without_a_profile_says_how_to_make_one(tmp_path, made, why):
    if "tfevents" in made:
        (tmp_path / made).write_bytes(b"x")
    else:
        (tmp_path / made).mkdir(parents=True)
    with pytest.raises(UnknownFormatError, match=rf"without profile data.*{why}.*jax\.profiler\.start_trace"):
        identify(tmp_path)


def test_a_folder_that_traceviz_wrote_is_left_to_its_reader(tmp_path):
    put(tmp_path, EARLY, training(1))
    (tmp_path / "manifest.json").write_text('{"kind": "traceviz.trace"}')
    assert identify(tmp_path).format == "traceviz"


def test_two_hosts_with_driver_calls_keep_their_operations_in_threads_of_their_own(tmp_path):
    call = event("cuLaunchKernel", 4 * US, US, {"correlation_id": Unsigned(9), "device_id": 0})
    inner = event("Cast:Cast", 2 * US, US)
    step = event("train", 0, 10 * US, {"step_num": 0, "_r": 1})
    capture = space(
        host(line(5, step, event("MatMul:MatMul", US, 8 * US), inner, call)),
        gpu(line(13, event("k", 6 * US, US, {"correlation_id": Unsigned(9)}), name="Stream #13(Compute)")),
        environment(),
    )
    for name in ("a.xplane.pb", "b.xplane.pb"):
        folder = put(tmp_path, EARLY, capture, name)
    tables = read(folder)
    assert rows(tables, "cuda_api", "process_id", "thread_id", "name") == [
        (0, 0, "cuLaunchKernel"),
        (1, 1, "cuLaunchKernel"),
    ]
    operations = {row[0]: row for row in rows(tables, "host_ops", "op_id", "process_id", "name", "depth", "parent_id")}
    assert sorted(row[1:4] for row in operations.values()) == [
        (process, name, depth)
        for process in (0, 1)
        for name, depth in (("Cast:Cast", 2), ("MatMul:MatMul", 1), ("train", 0))
    ]
    parents = [(row[1], operations[row[4]][1]) for row in operations.values() if row[4] is not None]
    assert parents == [(process, process) for process, _ in parents]
    assert len(parents) == 4


@pytest.mark.parametrize("silent", [space(errors=["No profiler"]), space(environment(1), errors=["No profiler"])])
def test_a_host_without_events_has_no_say_in_the_clock(tmp_path, silent):
    put(tmp_path, EARLY, silent, "a.xplane.pb")
    put(tmp_path, EARLY, training(2), "b.xplane.pb")
    tables = read(put(tmp_path, EARLY, training(2), "c.xplane.pb"))
    assert "clocks-not-aligned" not in notes(tables)
    assert (tables.run_facts()["span_ns"], rows(tables, "steps", "start_ns")[0]) == (190_000, (0,))
    assert tables.run_facts()["t0_unix_ns"] == 1_700_000_000_000_001_000


def test_events_of_unknown_planes_are_counted_over_all_hosts(tmp_path):
    custom = plane("/device:CUSTOM:X", line(1, event("a", 0, US), event("b", US, US)))
    for name in ("a", "b"):
        folder = put(tmp_path, EARLY, space(custom, environment()), f"{name}.xplane.pb")
    assert notes(read(folder))["unknown-planes"][1] == 4


def test_a_capture_compressed_in_several_parts_is_read_whole(tmp_path):
    file = tmp_path / "host.xplane.pb.gz"
    content = training(3)
    file.write_bytes(gzip.compress(content[:500]) + gzip.compress(content[500:]))
    tables = read(file)
    assert (tables.rows("steps"), notes(tables)) == (3, {})


def test_damaged_group_ids_of_several_hosts_are_no_groups(tmp_path):
    marker = event("train", 0, US, {"group_id": 2**62, "step_name": "train 0"})
    for name in ("a", "b", "c"):
        folder = put(tmp_path, EARLY, space(host(line(1, marker)), environment()), f"{name}.xplane.pb")
    assert rows(read(folder), "host_ops", "group_id") == [(None,)] * 3
