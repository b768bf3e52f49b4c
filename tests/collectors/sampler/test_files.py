"""Files of /proc and of control groups that the sampler reads: lines as kernels write them, and their meaning."""

import os
import subprocess
from pathlib import Path

import pytest

from traceviz.collectors.sampler import probes
from traceviz.collectors.sampler.machine import THREAD_VARIABLES, cgroup, environment, machine_settings
from traceviz.collectors.sampler.metrics import PROGRAM_RSS, Reading
from traceviz.collectors.sampler.probes import (
    GpuProbe,
    LoadProbe,
    NewcomersProbe,
    Probe,
    ProcessesProbe,
    ProgramProbe,
    TrafficProbe,
    core_shares,
)
from traceviz.collectors.sampler.proc import (
    PAGE_BYTES,
    TICK_NS,
    MachineStat,
    ProcessTree,
    grown,
    parse_available,
    parse_children,
    parse_io,
    parse_load,
    parse_machine,
    parse_stat,
)
from traceviz.collectors.sampler.sampler import flush_pause
from traceviz.collectors.sampler.threads import ThreadClocks, growth, parse_clocks, parse_switches, read_switches

NUMBERS = "1 7 7 0 -1 4194304 99 0 0 0 250 50 30 20 20 0 9 0 4711 3133440 512 18446744073709551615"


def stat_line(pid=10, name="python", parent=1, state="S", *, own=300, reaped=50, threads=9, pages=512):
    rest = f"{parent} 7 7 0 -1 4194304 99 0 0 0 {own} 0 {reaped} 0 20 0 {threads} 0 4711 3133440 {pages} 1844"
    return f"{pid} ({name}) {state} {rest}\n".encode()


def proc_folder(folder, *lines, threads=()):
    for line in lines:
        pid = line.split()[0].decode()
        (folder / pid).mkdir(parents=True, exist_ok=True)
        (folder / pid / "stat").write_bytes(line)
    for pid, tid, state in threads:
        task = folder / str(pid) / "task" / str(tid)
        task.mkdir(parents=True)
        (task / "status").write_text(f"Name:\tx\nState:\t{state} (what)\nvoluntary_ctxt_switches:\t5\n")
        (task / "schedstat").write_text(f"{tid * 1000} 70 3\n")
    return folder


@pytest.fixture
def tree_of(tmp_path):
    """Makes the tree below process 10 of processes with these lines, and closes its files at the end."""
    trees = []

    def make(*lines):
        trees.append(ProcessTree(10, proc_folder(tmp_path, *lines)))
        trees[-1].discover()
        return trees[-1]

    yield make
    for tree in trees:
        tree.close()


def test_a_line_of_stat_gives_3_seconds_of_cpu_whatever_the_name_holds():
    stat = parse_stat(f"10 (a) b (c) S {NUMBERS}\n".encode())
    assert (stat.name, stat.state, stat.parent, stat.threads) == ("a) b (c", "S", 1, 9)
    assert (stat.own_cpu_ns, stat.cpu_ns) == (300 * TICK_NS, 350 * TICK_NS)
    assert stat.rss_bytes == 512 * PAGE_BYTES


def test_reads_and_writes_are_those_of_storage():
    text = b"rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: 4096\nwrite_bytes: 512\ncancelled_write_bytes: 1\n"
    assert parse_io(text) == (4096, 512)
    assert parse_io(b"") == (0, 0)


def test_a_thread_that_ran_3_ms_and_waited_2_ms_is_told_by_its_clocks():
    assert parse_clocks(b"3000000 2000000 12\n") == (3_000_000, 2_000_000)
    assert parse_clocks(b"") is None


def test_a_runnable_thread_gave_up_its_core_5_times_and_lost_it_7_times():
    status = b"Name:\tx\nState:\tR (running)\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n"
    assert parse_switches(status) == (True, 5, 7)
    assert parse_switches(b"State:\tS (sleeping)\n") == (False, 0, 0)


def test_counters_of_threads_grow_by_2_and_that_of_a_new_one_since_it_began():
    assert growth({1: (10, 0), 2: (5, 0)}, {1: (12, 0), 3: (4, 0)}, 0) == [2, 4]


def test_6_threads_run_beside_the_reader():
    assert parse_load(b"0.50 0.40 0.30 7/1234 98765\n") == (6, 98765)


def test_time_of_the_hypervisor_counts_as_neither_busy_nor_idle():
    text = (
        b"cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 10 1 5 70 4 2 3 5 9 9\ncpu3 0 0 0 0 0 0 0 0 0 0\nintr 5 1 2\nprocs_running 6\n"
    )
    assert parse_machine(text) == MachineStat({0: 21, 3: 0}, {0: 100, 3: 0})


def test_a_core_that_was_busy_in_3_of_4_ticks_is_busy_in_75_percent():
    before = MachineStat({0: 100, 1: 0}, {0: 1000, 1: 50})
    now = MachineStat({0: 103, 1: 0, 2: 5}, {0: 1004, 1: 50, 2: 10})
    assert core_shares(before, now) == {0: 0.75}  # core 1 had no tick, core 2 was off before


def test_memory_that_is_left_is_2_kib():
    assert parse_available(b"MemTotal: 9 kB\nMemAvailable:       2 kB\n") == 2048
    assert parse_available(b"MemTotal: 9 kB\n") is None


class TestGrowthOfATree:
    def test_is_the_sum_of_what_each_process_counted(self):
        assert grown({1: (0, 100), 2: (1, 20)}, {1: (0, 130), 2: (1, 25)}) == 35

    def test_counts_a_child_once_when_its_parent_takes_over_its_counter(self):
        # The child went from 20 to 25 before it ended, the parent did 5 of its own: 10 in all.
        assert grown({1: (0, 100), 2: (1, 20)}, {1: (0, 130)}) == 10

    def test_counts_a_new_process_whole(self):
        assert grown({1: (0, 100)}, {1: (0, 100), 3: (1, 7)}) == 7

    def test_counts_a_child_that_was_never_seen_through_its_parent(self):
        assert grown({1: (0, 100)}, {1: (0, 140)}) == 40

    def test_is_never_negative_where_nobody_waited_for_a_child(self):
        assert grown({1: (0, 100), 2: (1, 90)}, {1: (0, 100)}) == 0


class TestTree:
    def test_holds_descendants_and_no_strangers(self, tree_of):
        lines = (stat_line(10), stat_line(30, parent=20), stat_line(20, parent=10), stat_line(40, parent=1))
        tree = tree_of(*lines)
        assert sorted(tree.members) == [10, 20, 30]

    def test_finds_what_has_appeared_and_forgets_nobody(self, tree_of, tmp_path):
        tree = tree_of(stat_line(10))
        proc_folder(tmp_path, stat_line(50, parent=10, name="worker"))
        tree.discover()
        tree.update(0)
        assert sorted(tree.members) == [10, 50]
        assert tree.names == {10: "python", 50: "worker"}

    def test_has_ended_when_only_processes_are_left_that_nobody_waited_for(self, tree_of):
        tree = tree_of(stat_line(10, state="Z"))
        assert tree.has_ended

    def test_of_a_program_that_is_gone_is_empty(self, tree_of):
        tree = tree_of(stat_line(40))
        assert (tree.members, tree.has_ended) == ({}, True)

    def test_keeps_profilers_apart(self, tree_of):
        lines = (stat_line(10, name="nsys"), stat_line(11, parent=10), stat_line(12, parent=10, name="nsys-launcher"))
        tree = tree_of(*lines)
        assert [process.pid for process in tree.program] == [11]

    def test_of_a_wrapped_program_leaves_out_the_2_that_wait_for_it_and_is_empty_before_it_starts(self, tmp_path):
        shells = stat_line(10, name="sh"), stat_line(11, parent=10, name="sh")
        tree = ProcessTree(10, proc_folder(tmp_path, *shells), tmp_path / "program.pid")
        tree.discover()
        tree.update(0)
        assert tree.program == []
        proc_folder(tmp_path, stat_line(12, parent=11, name="sh"), stat_line(13, parent=12, name="sh"))
        (tmp_path / "program.pid").write_text("12\n")
        tree.discover()
        tree.update(1)
        assert [process.pid for process in tree.program] == [12, 13]
        assert ProcessesProbe(1, tree).measure(0).__next__().pid == 12
        tree.close()

    def test_counts_threads_that_run(self, tmp_path):
        proc = proc_folder(tmp_path, stat_line(10), threads=[(10, 10, "S"), (10, 11, "R"), (10, 12, "R")])
        tree = ProcessTree(10, proc)
        tree.discover()
        assert sum(thread.runnable for thread in read_switches(tree.program, proc).values()) == 2
        tree.close()


def program_readings(tree, probe, now_ns):
    return {reading.metric.name: reading.value for reading in probe.measure(now_ns)}


class TestProgram:
    def test_only_its_own_processes_are_measured_one_by_one(self, tree_of, tmp_path):
        lines = (
            stat_line(10, name="nsys"),
            stat_line(11, parent=10, own=100),
            stat_line(12, parent=10, name="nsys-tee"),
        )
        tree = tree_of(*lines)
        probe = ProcessesProbe(1, tree)
        assert [reading.pid for reading in probe.measure(0)] == [11]
        proc_folder(tmp_path, stat_line(11, parent=10, own=125))
        tree.update(100 * TICK_NS)
        readings = {reading.metric.name: reading for reading in probe.measure(100 * TICK_NS)}
        assert (readings["process CPU"].pid, readings["process CPU"].value) == (11, 25.0)

    def test_a_profiler_used_half_a_core_and_not_the_110_seconds_of_the_program_that_it_waited_for(
        self, tree_of, tmp_path
    ):
        lines = stat_line(10, name="nsys", own=100), stat_line(11, parent=10, own=11_000)
        tree = tree_of(*lines)
        probe, second = ProgramProbe(1, tree), 100 * TICK_NS
        program_readings(tree, probe, 0)
        proc_folder(tmp_path, stat_line(10, name="nsys", own=150, reaped=11_050))
        proc_folder(tmp_path, stat_line(11, parent=10, state="Z", own=11_000))
        assert program_readings(tree, probe, second)["profiler CPU"] == 50.0

    def test_a_part_of_the_profiler_that_ends_takes_nothing_from_another(self, tree_of, tmp_path):
        lines = stat_line(10, name="nsys", own=100), stat_line(12, parent=10, name="nsys-tee", own=400)
        tree = tree_of(*lines)
        probe = ProgramProbe(1, tree)
        program_readings(tree, probe, 0)
        tree.members.pop(12).close()
        proc_folder(tmp_path, stat_line(10, name="nsys", own=130))
        assert program_readings(tree, probe, 100 * TICK_NS)["profiler CPU"] == 30.0

    def test_memory_of_a_process_counts_from_its_second_reading_on(self, tree_of, tmp_path):
        tree = tree_of(stat_line(10, pages=100))
        probe = ProgramProbe(1, tree)
        pages = []
        for turn in range(3):
            pages.append(program_readings(tree, probe, turn * TICK_NS)["program memory"] / PAGE_BYTES)
            proc_folder(tmp_path, stat_line(11, parent=10, pages=100 - turn * 60))
            tree.discover()
        assert pages == [100, 100, 140]

    def test_that_has_ended_while_its_profiler_works_on_has_no_memory_of_0_bytes(self, tree_of, tmp_path):
        lines = stat_line(10, name="nsys"), stat_line(11, parent=10, pages=5)
        tree = tree_of(*lines)
        probe = ProgramProbe(1, tree)
        assert program_readings(tree, probe, 0)["program memory"] == 5 * PAGE_BYTES
        proc_folder(tmp_path, stat_line(11, parent=10, state="Z", pages=0))
        names = program_readings(tree, probe, 100 * TICK_NS).keys()
        assert names.isdisjoint({"program memory", "program threads", "program processes"})
        assert "profiler CPU" in names

    def test_a_process_that_was_busy_all_the_time_is_that_however_late_its_files_were_read(self, tree_of, tmp_path):
        second = 100 * TICK_NS
        tree = tree_of(stat_line(10, own=0))
        probe, shares = ProcessesProbe(1, tree), []
        for read_at, asked_at, own in [(0, 4, 0), (5, 6, 500), (5, 9, 500), (10, 11, 1000)]:
            proc_folder(tmp_path, stat_line(10, own=own))
            tree.update(read_at * second)
            shares.append(program_readings(tree, probe, asked_at * second).get("process CPU"))
        assert shares == [None, 100.0, None, 100.0]


@pytest.mark.parametrize(("newest", "found"), [("11 11", [10]), ("11 12", [10, 12]), ("0 0", [10, 12])])
def test_new_processes_are_looked_for_when_the_newest_is_another_or_not_told(tmp_path, newest, found):
    first, then = newest.split()
    proc = proc_folder(tmp_path, stat_line(10))
    (proc / "loadavg").write_text(f"0.50 0.40 0.30 3/9 {first}\n")
    tree = ProcessTree(10, proc)
    probe = NewcomersProbe(1, tree)
    assert list(probe.measure(0)) == []
    proc_folder(tmp_path, stat_line(12, parent=10))
    (proc / "loadavg").write_text(f"0.50 0.40 0.30 3/9 {then}\n")
    list(probe.measure(1))
    assert sorted(tree.members) == found
    tree.close()


def test_children_and_theirs_are_found_with_the_load_without_a_look_at_all_processes(tmp_path, monkeypatch):
    proc = proc_folder(tmp_path, stat_line(10), stat_line(12, parent=10), stat_line(13, parent=12), stat_line(14))
    for pid, children in ((10, "12 99 "), (12, "13 ")):  # 99 has ended since
        (proc / f"{pid}/task/{pid}").mkdir(parents=True)
        (proc / f"{pid}/task/{pid}/children").write_text(children)
    (proc / "loadavg").write_text("0.50 0.40 0.30 3/9 13\n")
    tree = ProcessTree(10, proc)
    tree._adopt(10)
    monkeypatch.setattr(ProcessTree, "discover", None)
    assert [reading.value for reading in LoadProbe(1, tree).measure(0)] == [2]
    assert sorted(tree.members) == [10, 12, 13]
    tree.close()


def test_of_a_list_of_children_that_is_cut_off_the_last_is_none():
    assert parse_children(b"12 345 67") == [12, 345]
    assert parse_children(b"") == parse_children(b"12") == []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_child_is_found_by_the_kernels_list_of_children_and_once_only():
    tree = ProcessTree(os.getpid())
    tree.discover()
    if tree.members[os.getpid()].children_file is None:
        pytest.skip("this kernel keeps no lists of children")
    with subprocess.Popen(["sleep", "60"]) as child:
        tree.follow()
        member = tree.members[child.pid]
        tree.discover()
        assert tree.members[child.pid] is member
        child.kill()
    tree.update(0)
    assert child.pid not in tree.members
    tree.close()


def test_all_probes_together_may_take_less_than_0_6_percent_of_a_core_and_0_75_with_gpus():
    kinds = [kind for kind in vars(probes).values() if isinstance(kind, type) and issubclass(kind, Probe)]
    shares = {kind: kind.cpu_share for kind in kinds if kind is not Probe}
    of_gpus = shares[GpuProbe] + shares[TrafficProbe]
    assert len(shares) == 10
    assert sum(shares.values()) - of_gpus <= 0.006 + 1e-9
    assert of_gpus <= 0.0015 + 1e-9


class Wordy(Probe):
    """Takes no time, and yields many readings."""

    cpu_share = 0.001

    def measure(self, now_ns):
        return iter([Reading(PROGRAM_RSS, 1.0, pid) for pid in range(1000)])


def test_a_probe_of_1000_readings_waits_3_seconds_as_they_have_to_be_stored():
    probe = Wordy(period_ns=100_000_000)
    assert len(probe.turn(0)) == 1000
    assert probe.due_ns > 2_900_000_000
    assert probe.turn(2_900_000_000) == []


@pytest.mark.parametrize(
    ("ran_s", "took_ms", "pause_s"), [(0, 0, 2), (24, 5, 3), (100, 5, 5), (100, 12.5, 5), (4, 6, 2.4), (100, 20, 8)]
)
def test_writing_takes_a_quarter_percent_of_a_core_at_most(ran_s, took_ms, pause_s):
    assert flush_pause(ran_s * 10**9, int(took_ms * 10**6)) == pause_s * 10**9


class TestThreadClocks:
    def test_are_those_of_all_threads_and_of_new_ones(self, tmp_path):
        proc = proc_folder(tmp_path, stat_line(10, threads=2), threads=[(10, 10, "S"), (10, 11, "R")])
        tree = ProcessTree(10, proc)
        tree.discover()
        clocks = ThreadClocks(proc)
        assert clocks.read(tree.program) == {10: (10_000, 70), 11: (11_000, 70)}
        (proc / "10/task/11/schedstat").write_text("11500 90 4\n")
        proc_folder(tmp_path, stat_line(10, threads=3), threads=[(10, 12, "R")])
        tree.update(0)
        assert clocks.read(tree.program) == {10: (10_000, 70), 11: (11_500, 90), 12: (12_000, 70)}
        clocks.close()
        tree.close()

    def test_of_more_threads_than_files_may_be_open_are_read_all_the_same(self, tmp_path):
        proc = proc_folder(tmp_path, stat_line(10), threads=[(10, number, "S") for number in range(10, 19)])
        tree = ProcessTree(10, proc)
        tree.discover()
        clocks = ThreadClocks(proc, most=2)
        assert [len(clocks.read(tree.program)) for _ in range(2)] == [9, 9]
        assert sum(map(len, clocks._files.values())) == 2
        clocks.close()
        tree.close()

    def test_of_a_program_that_is_gone_are_none_and_its_files_are_let_go(self, tmp_path):
        proc = proc_folder(tmp_path, stat_line(10, threads=1), threads=[(10, 10, "S")])
        tree = ProcessTree(10, proc)
        tree.discover()
        clocks = ThreadClocks(proc)
        assert len(clocks.read(tree.program)) == 1
        assert (clocks.read([]), clocks._files) == ({}, {})
        tree.close()


class TestControlGroups:
    def test_of_version_2_limit_to_the_tightest_on_the_way_up(self, tmp_path):
        (tmp_path / "proc/7").mkdir(parents=True)
        (tmp_path / "proc/7/cgroup").write_text("0::/pod/job\n")
        job = tmp_path / "sys/fs/cgroup/pod/job"
        job.mkdir(parents=True)
        (job / "cpu.max").write_text("max 100000\n")
        (job.parent / "cpu.max").write_text("150000 100000\n")
        (job / "memory.max").write_text("max\n")
        (job.parent / "memory.max").write_text("2147483648\n")
        (job / "cpu.stat").write_text("usage_usec 5\nnr_throttled 2\nthrottled_usec 30\n")
        groups = cgroup(7, tmp_path)
        assert (groups.cpu_limit(), groups.memory_limit(), groups.throttled_ns()) == (1.5, 2_147_483_648, 30_000)

    def test_of_version_1_without_quota_limit_nothing(self, tmp_path):
        (tmp_path / "proc/7").mkdir(parents=True)
        (tmp_path / "proc/7/cgroup").write_text("4:cpu,cpuacct:/\n3:memory:/x\n")
        cpu = tmp_path / "sys/fs/cgroup/cpu"
        cpu.mkdir(parents=True)
        (cpu / "cpu.cfs_quota_us").write_text("-1\n")
        (cpu / "cpu.cfs_period_us").write_text("100000\n")
        groups = cgroup(7, tmp_path)
        assert (groups.cpu_limit(), groups.memory_limit(), groups.throttled_ns()) == (None, None, None)

    def test_of_version_1_with_quota_give_2_cores(self, tmp_path):
        (tmp_path / "proc/7").mkdir(parents=True)
        (tmp_path / "proc/7/cgroup").write_text("4:cpu:/\n")
        cpu = tmp_path / "sys/fs/cgroup/cpu"
        cpu.mkdir(parents=True)
        (cpu / "cpu.cfs_quota_us").write_text("200000\n")
        (cpu / "cpu.cfs_period_us").write_text("100000\n")
        (cpu / "cpu.stat").write_text("nr_periods 9\nnr_throttled 1\nthrottled_time 77\n")
        assert (cgroup(7, tmp_path).cpu_limit(), cgroup(7, tmp_path).throttled_ns()) == (2.0, 77)


def test_only_variables_about_threads_are_kept_and_a_secret_is_not(tmp_path):
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/environ").write_bytes(b"OMP_NUM_THREADS=4\0API_TOKEN=secret\0KMP_BLOCKTIME=1\0broken\0")
    assert environment(7, tmp_path) == {"OMP_NUM_THREADS": "4", "KMP_BLOCKTIME": "1"}
    assert len(THREAD_VARIABLES) == 16


def test_two_threads_of_one_core_are_one_physical_core(tmp_path):
    for number, siblings in enumerate(("0-1", "0-1", "2-3", "2-3")):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{number}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(siblings)
        (folder / "physical_package_id").write_text("0")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("model name\t: Fast 9000\nflags\t\t: fpu avx2 avx512_bf16\n")
    settings = machine_settings(os.getpid(), tmp_path)
    assert (settings["machine.physical_cores"], settings["machine.sockets"]) == ("2", "1")
    assert (settings["machine.cpu"], settings["machine.cpu_features"]) == ("Fast 9000", "avx512_bf16 avx2")
    assert float(settings["machine.usable_cores"]) >= 1
    assert "machine.cpu_limit" not in settings


@pytest.mark.parametrize(("nodes", "stated"), [((), 0), (("0-3",), 0), (("0-1,4-5", "2-3,6-7", ""), 2)])
def test_cores_of_memory_nodes_are_stated_where_there_are_several(tmp_path, nodes, stated):
    for number, cores in enumerate(nodes):
        (tmp_path / f"sys/devices/system/node/node{number}").mkdir(parents=True)
        (tmp_path / f"sys/devices/system/node/node{number}/cpulist").write_text(f"{cores}\n")
    settings = machine_settings(os.getpid(), tmp_path)
    listed = {key: value for key, value in settings.items() if "memory_node" in key}
    assert list(listed.values()) == list(nodes[:stated])
    assert len(listed) == stated


@pytest.mark.parametrize("wrong", ["", "x", "1:2"])
def test_a_strange_list_of_control_groups_limits_nothing(tmp_path, wrong):
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text(wrong)
    assert cgroup(7, tmp_path).cpu_limit() is None
