"""Facts in a manifest about a run and the machine, omitted facts, and completeness at any time."""

import json
import os
from pathlib import Path

import pytest

from traceviz.collectors.base import Availability, Harvest, Problem, Window
from traceviz.collectors.run.machine import _with_answer, read_machine
from traceviz.collectors.run.manifest import (
    CollectorEntry,
    Manifest,
    command_text,
    entries_before,
    entry_after,
    is_run_folder,
    settings,
    versions_after,
    without_folders,
    write_manifest,
)


def manifest(**facts):
    plain = {
        "name": "train",
        "command": "python train.py --batch-size 64",
        "window": Window(),
        "rate_hz": 10.0,
        "collectors": (),
        "machine": {"cores": 2},
        "versions": {"traceviz": "0.1.0"},
        "settings": {},
    }
    return Manifest(**{**plain, **facts})


def test_a_manifest_has_its_24_keys_from_the_first_moment_on():
    document = manifest().document()
    assert set(document) == {
        *("kind", "version", "name", "tags", "command", "left_out", "status", "exit", "pid", "window", "rate_hz"),
        *("started_unix_ns", "ended_unix_ns", "duration_ns", "collectors", "machine", "versions", "settings"),
        *("ending", "usage", "overhead", "problems", "tables", "verdict"),
    }
    assert (document["kind"], document["version"], document["status"]) == ("traceviz.run", 1, "running")
    assert document["exit"] == {"code": None, "signal": None}
    assert document["window"] == {"first_step": 10, "steps": 20, "delay_s": None, "duration_s": None}


def test_problems_and_collectors_are_plain_json():
    entry = CollectorEntry("torch", "failed", problems=(Problem("no-steps", "None.", "Give --steps."),))
    document = json.loads(json.dumps(manifest(collectors=(entry,)).document()))
    assert document["collectors"][0]["problems"] == [{"code": "no-steps", "message": "None.", "fix": "Give --steps."}]


@pytest.mark.parametrize(("left_out", "shown"), [(("command line",), "…/data.bin"), ((), "/home/ann/acme/data.bin")])
def test_folders_in_what_an_error_said_are_private(left_out, shown):
    problem = Problem("not-started", "OSError: cannot open '/home/ann/acme/data.bin', 8/s or more.")
    entry = CollectorEntry("torch", "failed", problems=(problem,))
    document = manifest(collectors=(entry,), problems=(problem,), left_out=left_out).document()
    messages = [document["problems"][0]["message"], document["collectors"][0]["problems"][0]["message"]]
    assert messages == [f"OSError: cannot open '{shown}', 8/s or more."] * 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("~/a/b.txt is there", "…/b.txt is there"),
        ("in /data/set/: none", "in …/set/: none"),
        ("https://a.org/b/c, and/or 3/4", "https://a.org/b/c, and/or 3/4"),
    ],
)
def test_only_paths_are_shortened(text, shown):
    assert without_folders(text) == shown


def test_a_manifest_is_replaced_and_nothing_else_is_left_in_the_folder(tmp_path):
    for code in (None, 3):
        write_manifest(tmp_path, manifest(code=code))
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
    assert json.loads((tmp_path / "manifest.json").read_text())["exit"]["code"] == 3
    assert (tmp_path / "manifest.json").stat().st_mode & 0o777 == 0o644


def test_a_manifest_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    write_manifest(tmp_path, manifest(code=1))

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_manifest(tmp_path, manifest(code=2))
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
    assert json.loads((tmp_path / "manifest.json").read_text())["exit"]["code"] == 1


def test_names_that_are_not_unicode_are_stored_and_read_again(tmp_path):
    write_manifest(tmp_path, manifest(name=os.fsdecode(b"run\xff"), tags={"who": "Ünal"}))
    raw = (tmp_path / "manifest.json").read_bytes()
    assert "Ünal".encode() in raw
    assert is_run_folder(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", '{"kind": "traceviz.trace"}', "{"])
def test_other_folders_are_no_run_folders(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    assert not is_run_folder(tmp_path)
    assert not is_run_folder(tmp_path / "missing")


def test_collectors_are_listed_with_why_they_do_not_record():
    states = {
        "jax": Availability("ready", "1.0"),
        "nsys": Availability("not-installed", "None.", "install nsys"),
        "torch": Availability("ready", "2.0"),
    }
    entries = entries_before(states, ("torch",))
    assert [(entry.name, entry.state) for entry in entries] == [
        ("jax", "not-asked"),
        ("nsys", "not-installed"),
        ("torch", "recording"),
    ]
    assert entries[1].fix == "install nsys"


@pytest.mark.parametrize(
    ("harvest", "state"),
    [
        (Harvest((Path("/run/raw/torch/a.json"),)), "recorded"),
        (Harvest((Path("/run/raw/torch/a.json"),), (Problem("cut", "Cut."),)), "recorded"),
        (Harvest(problems=(Problem("no-steps", "None."),)), "failed"),
        (Harvest(), "unused"),
        (Harvest(facts={"emitted": 81, "arrived": 81}), "recorded"),
        (Harvest(problems=(Problem("nvtx-lost", "Lost."),), facts={"emitted": 81, "arrived": 0}), "failed"),
    ],
)
def test_a_collector_ends_as_what_it_left(harvest, state):
    after = entry_after(CollectorEntry("torch", "recording", "2.0"), harvest, Path("/run"))
    assert (after.state, after.detail) == (state, "2.0")
    assert after.sources == (("raw/torch/a.json",) if harvest.sources else ())


def test_versions_that_collectors_found_join_our_own():
    entries = (
        CollectorEntry("torch", "recorded", facts={"framework": "torch", "version": "2.13.0"}),
        CollectorEntry("nsys", "recorded", facts={"versions": {"nsys": "2022.4.2"}}),
        CollectorEntry("jax", "unused", facts={"framework": "jax", "version": None}),
    )
    assert versions_after({"traceviz": "1"}, entries) == {"traceviz": "1", "torch": "2.13.0", "nsys": "2022.4.2"}


def test_a_command_keeps_its_plain_options_and_2_of_its_3_are_none():
    command = ("/home/ann/env/bin/python", "train.py", "--batch-size", "64", "--token=s3cret", "--by", "adalove")
    kept = command_text(command, {"USER": "adalove"}, keep_private=False)
    assert kept == "python train.py --batch-size 64 --token=… --by …"
    assert command_text(command, {}, keep_private=True) == " ".join(command)


def test_settings_are_those_of_frameworks_and_never_secrets():
    environment = {
        "OMP_NUM_THREADS": "8",
        "TF_NUM_INTEROP_THREADS": "2",
        "TF_VAR_password": "s3cret",
        "TORCH_API_TOKEN": "s3cret",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "XLA_FLAGS": "--xla_dump_to=/home/ann/dump",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "PATH": "/bin",
        "KMP_AFFINITY": "x" * 600,
    }
    shown = settings(environment, "/home/ann", keep_private=False)
    assert list(shown) == [
        "CUDA_VISIBLE_DEVICES",
        "KMP_AFFINITY",
        "OMP_NUM_THREADS",
        "TF_NUM_INTEROP_THREADS",
        "XLA_FLAGS",
    ]
    assert shown["XLA_FLAGS"] == "--xla_dump_to=…/dump"
    assert len(shown["KMP_AFFINITY"]) == 501
    assert settings(environment, "/home/ann", keep_private=True)["XLA_FLAGS"] == "--xla_dump_to=/home/ann/dump"


def put(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_machine_of_2_sockets_with_2_threads_per_core_is_read_from_its_files(tmp_path):
    topology = {
        f"sys/devices/system/cpu/cpu{cpu}/topology/{key}": f"{value}\n"
        for cpu in range(8)
        for key, value in (
            ("physical_package_id", cpu // 4),
            ("thread_siblings_list", f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"),
        )
    }
    put(
        tmp_path,
        {
            **topology,
            "proc/cpuinfo": "processor : 0\nmodel name\t: Xeon 9000\n",
            "proc/meminfo": "MemTotal:       1024 kB\n",
            "etc/os-release": 'ID=x\nPRETTY_NAME="Some Linux 9"\n',
            "proc/self/cgroup": "0::/job/step\n",
            "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
            "sys/fs/cgroup/job/memory.max": "4096\n",
            "sys/fs/cgroup/memory.max": "max\n",
            "proc/1/cgroup": "1:cpu:/slurm/uid_1/job_2\n",
        },
    )
    machine = read_machine(tmp_path)
    assert (machine.sockets, machine.physical_cores, machine.threads_per_core) == (2, 4, 2)
    assert (machine.cpu, machine.os, machine.memory_bytes) == ("Xeon 9000", "Some Linux 9", 1 << 20)
    assert (machine.cpu_limit, machine.memory_limit_bytes, machine.container) == (1.5, 4096, "slurm")


def test_limits_of_the_older_control_groups_are_read(tmp_path):
    put(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/\n3:memory:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            ".dockerenv": "",
        },
    )
    machine = read_machine(tmp_path)
    assert (machine.cpu_limit, machine.memory_limit_bytes, machine.container) == (0.5, None, "docker")


def test_gpus_come_from_the_driver_and_their_memory_from_nvidia_smi(tmp_path):
    put(
        tmp_path,
        {
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n",
            "proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA A10\nGPU UUID: \t GPU-aa\n",
            "proc/driver/nvidia/gpus/0000:02:00.0/information": "Model: \t\t NVIDIA L4\nGPU UUID: \t GPU-bb\n",
        },
    )
    machine = read_machine(tmp_path)
    assert machine.driver == "550.54.15"
    assert [(gpu.ordinal, gpu.name, gpu.memory_bytes) for gpu in machine.gpus] == [
        (0, "NVIDIA A10", None),
        (1, "NVIDIA L4", None),
    ]
    measured = _with_answer(machine, "1, GPU-aa, 23028\n0, GPU-bb, [N/A]\nsome warning\n")
    assert [(gpu.ordinal, gpu.uuid, gpu.memory_bytes) for gpu in measured.gpus] == [
        (0, "GPU-bb", None),
        (1, "GPU-aa", 23028 << 20),
    ]


def test_a_machine_that_says_nothing_is_described_all_the_same(tmp_path):
    machine = read_machine(tmp_path)
    assert (machine.sockets, machine.memory_bytes, machine.gpus, machine.driver) == (None, None, (), None)
    assert machine.usable_cores >= 1


def test_the_host_name_is_private():
    machine = read_machine()
    assert "host" not in machine.facts()
    assert machine.facts(keep_private=True)["host"]


def test_of_a_path_in_a_setting_1_part_is_shown():
    environment = {"CUDA_CACHE_PATH": "/srv/customer/secret/cache", "TORCH_HOME": "/home/ann"}
    shown = settings(environment, "/home/ann", keep_private=False)
    assert shown == {"CUDA_CACHE_PATH": "…/cache", "TORCH_HOME": "~"}
