"""nvprof databases: every table of records, every difference between versions, and what damaged files do."""

import sqlite3
import struct

import pytest

from tests.parsers.nvprof import database as nvprof
from tests.parsers.nvprof.database import EPOCH, MAIN, PID, PREFIX, UNSIGNED_MAIN, owner, write
from tests.support.traces import note_counts, rows
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import Match, ReadRequest
from traceviz.parsers.nvprof.events import function, functions
from traceviz.parsers.nvprof.readers import NvprofSqliteReader
from traceviz.parsers.registry import identify
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

pytestmark = pytest.mark.process

MANGLED = "_ZN2at6native18elementwise_kernelILi4EEEvi"


def read(path, **options):
    return TraceTables(dict(NvprofSqliteReader().read(path, ReadRequest(**options))))


def launch(begin, correlation, duration=100):
    """Return a launch call and its kernel, as keyword arguments of ``write``."""
    call = {"cbid": 211, "start": EPOCH + begin, "end": EPOCH + begin + 5, "correlationId": correlation}
    times = {"start": EPOCH + begin + 10, "end": EPOCH + begin + 10 + duration}
    shape = {"gridX": 7, "gridY": 2, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1, "registersPerThread": 32}
    memory = {"staticSharedMemory": 48, "dynamicSharedMemory": 1024}
    kernel = {**times, **shape, **memory, "correlationId": correlation, "name": 1, "streamId": 7, "contextId": 1}
    return call, kernel


class TestTables:
    def test_kernels_carry_their_launch_shape_and_the_demangled_name(self, tmp_path):
        call, kernel = launch(0, 5)
        tables = read(write(tmp_path, names={1: MANGLED}, RUNTIME=[call], CONCURRENT_KERNEL=[kernel]))
        (row,) = tables.kernels.collect().to_dicts()
        assert (row["start_ns"], row["dur_ns"], row["correlation_id"]) == (10, 100, 5)
        assert (row["grid_x"], row["grid_y"], row["block_x"], row["stream"]) == (7, 2, 128, 7)
        assert (row["registers_per_thread"], row["static_shared_bytes"]) == (32, 48)
        assert row["name"] == "void at::native::elementwise_kernel<4>(int)"
        assert row["dynamic_shared_bytes"] == 1024

    @pytest.mark.parametrize("table", ["KERNEL", "CONCURRENT_KERNEL", "CDP_KERNEL"])
    def test_kernels_may_be_in_any_of_three_tables(self, tmp_path, table):
        _, kernel = launch(0, 5)
        tables = read(write(tmp_path, names={1: "gemm"}, **{table: [kernel]}))
        assert rows(tables, "kernels", "name", "dur_ns") == [("gemm", 100)]

    def test_serial_and_concurrent_kernels_of_one_file_add_up(self, tmp_path):
        first, second = launch(0, 5)[1], launch(1000, 6)[1]
        tables = read(write(tmp_path, names={1: "gemm"}, KERNEL=[second], CONCURRENT_KERNEL=[first]))
        assert rows(tables, "kernels", "start_ns") == [(0,), (1000,)]

    def test_calls_are_named_by_number_and_lose_the_version_that_they_came_with(self, tmp_path):
        calls = [{"cbid": cbid, "start": EPOCH + cbid, "end": EPOCH + cbid + 2} for cbid in (20, 211)]
        driver = [{"cbid": 243, "start": EPOCH + 900, "end": EPOCH + 904}]
        tables = read(write(tmp_path, names={}, RUNTIME=calls, DRIVER=driver))
        named = rows(tables, "cuda_api", "name", "domain", "dur_ns")
        expected = [("cudaMalloc", "runtime", 2), ("cudaLaunchKernel", "runtime", 2), ("cuMemAlloc_v2", "driver", 4)]
        assert named == expected

    def test_a_number_that_no_header_has_stays_a_number_and_is_noted(self, tmp_path):
        calls = [{"cbid": cbid, "start": EPOCH, "end": EPOCH + 2} for cbid in (99_999, 99_999, 20)]
        tables = read(write(tmp_path, names={}, RUNTIME=calls))
        assert sorted(rows(tables, "cuda_api", "name")) == [("cbid_99999",), ("cbid_99999",), ("cudaMalloc",)]
        assert note_counts(tables)["function-unknown"] == 2

    def test_thread_ids_are_unsigned_and_calls_know_their_process(self, tmp_path):
        tables = read(write(tmp_path, names={}, RUNTIME=[launch(0, 5)[0]]))
        assert rows(tables, "threads", "tid", "process_id") == [(UNSIGNED_MAIN, 0)]
        assert rows(tables, "processes", "pid") == [(PID,)]

    def test_copies_have_cuptis_kinds_of_memory_and_not_those_of_nsys(self, tmp_path):
        copy = {"copyKind": 1, "srcKind": 1, "dstKind": 3, "bytes": 64, "start": EPOCH, "end": EPOCH + 9}
        pinned = {**copy, "copyKind": 2, "srcKind": 3, "dstKind": 2, "start": EPOCH + 20, "end": EPOCH + 30}
        tables = read(write(tmp_path, names={}, MEMCPY=[copy, pinned]))
        copies = rows(tables, "memcpy", "kind", "src_memory", "dst_memory", "bytes", "dur_ns")
        assert copies == [("h2d", "pageable", "device", 64, 9), ("d2h", "device", "pinned", 64, 10)]

    def test_copies_between_devices_are_peer_to_peer_whatever_they_call_themselves(self, tmp_path):
        copy = {"copyKind": 8, "srcKind": 3, "dstKind": 3, "bytes": 64, "start": EPOCH, "end": EPOCH + 9, "deviceId": 1}
        tables = read(write(tmp_path, names={}, MEMCPY2=[copy]))
        assert rows(tables, "memcpy", "kind", "device_id") == [("p2p", 0)]
        assert rows(tables, "devices", "ordinal") == [(1,)]

    def test_fills_before_cuda_9_do_not_know_the_kind_of_memory(self, tmp_path):
        fill = {"bytes": 16, "start": EPOCH, "end": EPOCH + 3}
        columns = {"MEMSET": "value bytes start end deviceId contextId streamId correlationId"}
        tables = read(write(tmp_path, names={}, version=8, columns=columns, MEMSET=[fill]))
        assert rows(tables, "memset", "bytes", "memory") == [(16, "unknown")]

    @pytest.mark.parametrize(
        ("kind", "ends", "expected"), [(1, (-1, 2), "h2d"), (2, (2, -1), "d2h"), (8, (0, 2), "d2d")]
    )
    def test_migrations_of_unified_memory_are_copies_of_the_device_at_their_end(self, tmp_path, kind, ends, expected):
        source, target = ends
        counter = {
            "counterKind": kind,
            "value": 4096,
            "start": EPOCH,
            "end": EPOCH + 8,
            "srcId": source,
            "dstId": target,
        }
        tables = read(write(tmp_path, names={}, UNIFIED_MEMORY_COUNTER=[counter]))
        assert rows(tables, "memcpy", "kind", "src_memory", "bytes") == [(expected, "managed", 4096)]
        assert rows(tables, "devices", "ordinal") == [(2,)]

    def test_counters_of_cuda_6_have_a_device_and_no_end(self, tmp_path):
        counter = {"counterKind": 1, "value": 4096, "timestamp": EPOCH, "deviceId": 0}
        columns = {"UNIFIED_MEMORY_COUNTER": "counterKind scope deviceId value timestamp processId"}
        tables = read(write(tmp_path, names={}, version=6, columns=columns, UNIFIED_MEMORY_COUNTER=[counter]))
        assert rows(tables, "memcpy", "kind", "dur_ns", "bytes") == [("h2d", None, 4096)]

    def test_page_faults_are_counted_and_no_copies(self, tmp_path):
        faults = [{"counterKind": 3, "value": 3, "start": EPOCH + i} for i in range(4)]
        tables = read(write(tmp_path, names={}, UNIFIED_MEMORY_COUNTER=faults))
        assert tables.rows("memcpy") == 0
        assert note_counts(tables)["unified-memory"] == 12

    def test_synchronisations_belong_to_the_process_of_their_call(self, tmp_path):
        wait = {"type": 3, "start": EPOCH, "end": EPOCH + 7, "streamId": -1, "contextId": 1}
        tables = read(write(tmp_path, names={}, SYNCHRONIZATION=[wait], RUNTIME=[launch(0, 5)[0]]))
        assert rows(tables, "sync", "kind", "dur_ns", "stream", "context_id") == [("stream", 7, None, 1)]

    def test_only_what_cupti_itself_takes_is_overhead(self, tmp_path):
        kinds = (1 << 16, 2 << 16, 1)
        taken = [{"overheadKind": kind, "start": EPOCH + i, "end": EPOCH + i + 5} for i, kind in enumerate(kinds)]
        tables = read(write(tmp_path, names={}, OVERHEAD=taken))
        assert rows(tables, "overhead", "name", "dur_ns") == [("Buffer flush", 5), ("Instrumentation", 5)]

    def test_overhead_of_a_process_has_no_thread(self, tmp_path):
        taken = {"overheadKind": 2 << 16, "start": EPOCH, "end": EPOCH + 5, "objectKind": 1, "objectId": owner()}
        tables = read(write(tmp_path, names={}, OVERHEAD=[taken]))
        assert rows(tables, "overhead", "process_id", "thread_id") == [(0, None)]
        assert tables.rows("threads") == 0

    def test_allocations_end_where_they_are_freed(self, tmp_path):
        kept = {"memoryKind": 3, "address": 256, "bytes": 100, "start": EPOCH + 5, "end": 0}
        freed = {"memoryKind": 2, "address": 512, "bytes": 50, "start": EPOCH + 6, "end": EPOCH + 60}
        call = launch(0, 5)[0]
        tables = read(write(tmp_path, names={}, MEMORY=[kept, freed], RUNTIME=[call]))
        allocations = rows(tables, "memory_events", "start_ns", "kind", "memory", "bytes")
        assert allocations == [(5, "alloc", "device", 100), (6, "alloc", "pinned", 50), (60, "free", "pinned", 50)]

    def test_measurements_of_the_machine_have_units(self, tmp_path):
        measured = [
            {"environmentKind": 1, "timestamp": EPOCH, "data": struct.pack("<5I", 1380, 877, 3, 16, 0)},
            {"environmentKind": 2, "timestamp": EPOCH + 1, "data": struct.pack("<I", 61)},
            {"environmentKind": 3, "timestamp": EPOCH + 2, "data": struct.pack("<II", 70_500, 300_000)},
            {"environmentKind": 4, "timestamp": EPOCH + 3, "data": struct.pack("<I", 40)},
        ]
        tables = read(write(tmp_path, names={}, ENVIRONMENT=measured, RUNTIME=[launch(0, 5)[0]]))
        assert rows(tables, "samples", "metric", "unit", "value") == [
            ("SM clock", "MHz", 1380),
            ("memory clock", "MHz", 877),
            ("GPU temperature", "°C", 61),
            ("GPU power", "W", 70.5),
            ("GPU power limit", "W", 300),
            ("fan speed", "%", 40),
        ]

    def test_devices_are_described_in_base_units(self, tmp_path):
        device = {"id": 0, "name": 2, "uuid": bytes(range(16)), "computeCapabilityMajor": 7}
        device |= {"numMultiprocessors": 80, "maxWarpsPerMultiprocessor": 64, "numThreadsPerWarp": 32}
        device |= {"globalMemorySize": 16_914_055_168, "globalMemoryBandwidth": 898_048_000, "coreClockRate": 1_530_000}
        tables = read(write(tmp_path, names={2: "Tesla V100"}, DEVICE=[device]))
        (row,) = tables.devices.collect().to_dicts()
        assert (row["name"], row["compute_capability"], row["sm_count"]) == ("Tesla V100", "7.0", 80)
        assert (row["max_threads_per_sm"], row["memory_bytes"]) == (2048, 16_914_055_168)
        assert (row["memory_bandwidth"], row["clock_hz"]) == (898_048_000_000, 1_530_000_000)
        assert row["uuid"] == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"

    def test_what_was_not_recorded_is_absent_and_what_did_not_happen_is_empty(self, tmp_path):
        tables = read(write(tmp_path, names={}, RUNTIME=[launch(0, 5)[0]]))
        assert {"kernels", "memcpy", "memset", "nvtx", "overhead"} <= set(tables)
        assert not {"sync", "memory_events", "samples", "os_calls", "host_ops"} & set(tables)
        assert tables.rows("kernels") == 0

    def test_without_api_calls_beside_kernels_the_api_was_not_traced(self, tmp_path):
        tables = read(write(tmp_path, names={1: "gemm"}, KERNEL=[launch(0, 5)[1]]))
        assert "cuda_api" not in tables
        assert "api-not-recorded" in note_counts(tables)

    def test_only_the_tables_asked_for_are_read(self, tmp_path):
        path = write(tmp_path, names={1: "gemm"}, KERNEL=[launch(0, 5)[1]], RUNTIME=[launch(0, 5)[0]])
        tables = read(path, tables=frozenset({"kernels"}))
        assert set(tables) == {"kernels", *schema.REQUIRED}


RANGE_NAMES = {3: "step", 4: "forward", 5: "my domain"}


def range_of(number, begin, end, name, **both):
    """Return the two records of a range."""
    first = {"flags": 2, "timestamp": EPOCH + begin, "id": number, "name": name, **both}
    return [first, {"flags": 4, "timestamp": EPOCH + end, "id": number, **both}]


class TestRanges:
    def test_begin_and_end_make_a_range_and_ranges_nest(self, tmp_path):
        records = [*range_of(1, 0, 100, 3), *range_of(2, 10, 40, 4)]
        tables = read(write(tmp_path, names=RANGE_NAMES, MARKER=records))
        ranges = rows(tables, "nvtx", "start_ns", "dur_ns", "name", "kind", "depth", "parent_id")
        assert ranges == [(0, 100, "step", "push_pop", 0, None), (10, 30, "forward", "push_pop", 1, 0)]

    def test_an_id_that_is_used_again_pairs_in_order_of_time(self, tmp_path):
        records = [*range_of(1, 0, 10, 3), *range_of(1, 20, 45, 3)]
        tables = read(write(tmp_path, names=RANGE_NAMES, MARKER=records[::-1]))
        assert rows(tables, "nvtx", "start_ns", "dur_ns") == [(0, 10), (20, 25)]

    def test_ranges_of_the_process_may_cross_and_do_not_nest(self, tmp_path):
        whole = {"objectKind": 1, "objectId": owner()}
        records = [*range_of(1, 0, 50, 3, **whole), *range_of(2, 10, 90, 4, **whole)]
        tables = read(write(tmp_path, names=RANGE_NAMES, MARKER=records))
        assert rows(tables, "nvtx", "kind", "depth", "dur_ns") == [("start_end", None, 50), ("start_end", None, 80)]
        assert rows(tables, "threads", "tid", "name") == [(0, "whole process")]

    def test_a_range_that_ends_on_another_thread_is_no_push_pop_range(self, tmp_path):
        first, second = range_of(1, 0, 50, 3)
        tables = read(write(tmp_path, names=RANGE_NAMES, MARKER=[first, {**second, "objectId": owner(PID, 256)}]))
        assert rows(tables, "nvtx", "kind", "dur_ns") == [("start_end", 50)]

    def test_marks_have_no_length_domains_have_names_and_categories_numbers(self, tmp_path):
        mark = {"flags": 1, "timestamp": EPOCH, "id": 9, "name": 4, "domain": 5}
        tables = read(write(tmp_path, names=RANGE_NAMES, MARKER=[mark], MARKER_DATA=[{"id": 9, "category": 17}]))
        marks = rows(tables, "nvtx", "name", "kind", "dur_ns", "domain", "category")
        assert marks == [("forward", "mark", None, "my domain", "[category 17]")]

    def test_what_the_capture_cut_is_kept_open_or_noted(self, tmp_path):
        never_ended, never_begun = range_of(1, 0, 0, 3)[0], range_of(2, 0, 70, 4)[1]
        tables = read(write(tmp_path, names=RANGE_NAMES, MARKER=[never_ended, never_begun]))
        assert rows(tables, "nvtx", "name", "dur_ns") == [("step", None)]
        assert {code: note_counts(tables)[code] for code in ("range-not-ended", "range-not-begun")} == {
            "range-not-ended": 1,
            "range-not-begun": 1,
        }

    def test_versions_before_domains_have_the_default_one(self, tmp_path):
        columns = {"MARKER": "flags timestamp id objectKind objectId name"}
        records = range_of(1, 0, 10, 3)
        tables = read(write(tmp_path, names=RANGE_NAMES, version=8, columns=columns, MARKER=records))
        assert rows(tables, "nvtx", "domain", "dur_ns") == [("", 10)]


class TestRun:
    def test_time_zero_is_wall_clock_time_where_it_can_be(self, tmp_path):
        call = launch(0, 5)[0]
        facts = read(write(tmp_path, names={}, RUNTIME=[call])).run_facts()
        assert (facts["t0_unix_ns"], facts["span_ns"], facts["source_schema"]) == (EPOCH, 5, "12")

    def test_times_since_the_machine_started_are_no_wall_clock_time(self, tmp_path):
        call = {"cbid": 20, "start": 5_000_000, "end": 5_000_009}
        facts = read(write(tmp_path, names={}, RUNTIME=[call])).run_facts()
        assert (facts["t0_unix_ns"], facts["span_ns"]) == (None, 9)

    @pytest.mark.parametrize(
        ("kernel", "expected"),
        [
            (MANGLED, "PyTorch"),
            ("_ZN10tensorflow7functor14BiasNCHWKernelIfEEvi", "TensorFlow"),
            ("_ZN5singa4cuda10KernelReluEmPKfPf", "Singa"),
            ("_ZN5mxnet2op8mxnet_op20mxnet_generic_kernelINS1_11set_to_zeroEEEviPf", "MXNet"),
            ("volta_sgemm_32x128_tn", None),
            ("_ZN2my2at6native3fooEv", None),
        ],
    )
    def test_the_framework_is_the_one_whose_own_kernels_ran(self, tmp_path, kernel, expected):
        tables = read(write(tmp_path, names={1: kernel}, KERNEL=[launch(0, 5)[1]]))
        assert tables.run_facts()["framework"] == expected

    def test_the_kernels_that_showed_it_are_settings_and_stay_away_where_nobody_wants_these(self, tmp_path):
        path = write(tmp_path, names={1: MANGLED}, KERNEL=[launch(0, 5)[1]])
        assert rows(read(path), "settings", "key", "value") == [
            ("framework.PyTorch.names", "names in at::native::, c10::")
        ]
        assert "settings" not in read(path, tables=frozenset({"kernels"}))

    def test_the_command_line_is_private_and_the_program_is_not(self, tmp_path):
        named = {"objectKind": 1, "objectId": owner(), "name": 6}
        path = write(
            tmp_path, names={6: "/home/ann/bin/python train.py --key s3cret"}, NAME=[named], RUNTIME=[launch(0, 5)[0]]
        )
        tables = read(path)
        assert rows(tables, "processes", "name") == [("python",)]
        assert tables.run_facts()["command"] is None
        assert "s3cret" in read(path, keep_private=True).run_facts()["command"]

    def test_threads_may_have_names(self, tmp_path):
        named = {"objectKind": 2, "objectId": owner(PID, MAIN), "name": 6}
        tables = read(write(tmp_path, names={6: "loader"}, NAME=[named], RUNTIME=[launch(0, 5)[0]]))
        assert rows(tables, "threads", "name") == [("loader",)]

    @pytest.mark.parametrize("version", [1, 8, 11, 12, 14, 16])
    def test_versions_that_are_known_need_no_word(self, tmp_path, version):
        tables = read(write(tmp_path, names={}, version=version, RUNTIME=[launch(0, 5)[0]]))
        assert (tables.run_facts()["source_schema"], tables.rows("notes")) == (str(version), 0)

    def test_an_unknown_version_is_read_with_a_note(self, tmp_path):
        tables = read(write(tmp_path, names={1: "gemm"}, version=99, KERNEL=[launch(0, 5)[1]]))
        assert "version-unknown" in note_counts(tables)
        assert tables.rows("kernels") == 1

    def test_a_missing_version_is_read_with_a_note(self, tmp_path):
        tables = read(write(tmp_path, names={1: "gemm"}, version=None, KERNEL=[launch(0, 5)[1]]))
        assert "version-missing" in note_counts(tables)
        assert tables.rows("kernels") == 1

    def test_device_work_of_two_processes_goes_to_the_one_that_launched_it(self, tmp_path):
        first, first_kernel = launch(0, 5)
        second, second_kernel = launch(1000, 6)
        calls = [first, {**second, "processId": PID + 1}]
        tables = read(
            write(
                tmp_path,
                names={1: "gemm"},
                RUNTIME=calls,
                KERNEL=[first_kernel, second_kernel, {**second_kernel, "correlationId": 77}],
            )
        )
        assert sorted(rows(tables, "kernels", "start_ns", "process_id")) == [(10, 0), (1010, 0), (1010, 1)]
        assert note_counts(tables)["owner-unknown"] == 1

    def test_processes_that_share_ids_have_the_work_of_their_own_calls(self, tmp_path):
        times = {5: 0, 6: 1000, 7: 2000}
        calls, kernels, waits = [], [], []
        for process, late in ((0, 0), (1, 300)):
            for number, begin in times.items():
                call, kernel = launch(begin + late, number)
                calls.append({**call, "processId": PID + process})
                kernels.append({**kernel, "deviceId": process})
                wait = {"type": 3, "streamId": 7, "contextId": 1, "correlationId": number}
                waits.append({**wait, "start": call["start"] + 1, "end": call["start"] + 4})
        tables = read(write(tmp_path, names={1: "gemm"}, RUNTIME=calls, KERNEL=kernels, SYNCHRONIZATION=waits))
        own = [(process, begin + late) for process, late in ((0, 0), (1, 300)) for begin in times.values()]
        found = rows(tables, "kernels", "process_id", "start_ns", "device_id")
        assert sorted(found) == [(process, start + 10, process) for process, start in own]
        assert sorted(rows(tables, "sync", "process_id", "start_ns")) == [
            (process, start + 1) for process, start in own
        ]
        assert "owner-unknown" not in note_counts(tables)


class TestDamage:
    def test_kernels_whose_time_is_not_known_are_left_out_and_noted(self, tmp_path):
        kernel = launch(0, 5)[1]
        tables = read(write(tmp_path, names={1: "gemm"}, KERNEL=[kernel, {**kernel, "start": 0, "end": 0}]))
        assert rows(tables, "kernels", "dur_ns") == [(100,)]
        assert note_counts(tables)["not-timed"] == 1
        assert tables.run_facts()["span_ns"] == 100

    def test_a_kernel_that_ends_before_it_starts_has_no_duration(self, tmp_path):
        kernel = launch(0, 5)[1]
        tables = read(write(tmp_path, names={1: "gemm"}, KERNEL=[{**kernel, "end": kernel["start"] - 1}]))
        assert rows(tables, "kernels", "dur_ns") == [(None,)]
        assert note_counts(tables)["negative-duration"] == 1

    def test_names_that_the_file_lacks_are_unknown_and_noted(self, tmp_path):
        kernel = launch(0, 5)[1]
        tables = read(write(tmp_path, names=None, KERNEL=[kernel, kernel]))
        assert rows(tables, "kernels", "name") == [("[unknown]",), ("[unknown]",)]
        assert note_counts(tables)["name-unknown"] == 2

    @pytest.mark.parametrize("table", sorted(nvprof.TABLES))
    def test_every_table_may_lack_any_column_or_be_missing(self, tmp_path, table):
        """The rest of a file is read if a version lacks any part. Few tables, because they are read often."""
        call, kernel = launch(0, 5)
        full = {"RUNTIME": [call], "KERNEL": [kernel], "MARKER": range_of(1, 0, 9, 1)}
        usual = {"start": EPOCH, "end": EPOCH + 5, "timestamp": EPOCH, "counterKind": 1, "environmentKind": 1}
        stored = nvprof.TABLES[table].split()
        for index, lacking in enumerate([None, *stored]):
            kept = [column for column in stored if column != lacking] if lacking else ["novelty"]
            row = {column: usual[column] for column in kept if column in usual}
            given = {**full, table: [row, row]}
            path = write(
                tmp_path, names={1: "gemm"}, name=f"{index}.nvvp", columns={table: " ".join(kept)}, only=True, **given
            )
            tables = read(path)
            assert tables.rows("kernels") + tables.rows("cuda_api") + tables.rows("nvtx") >= 2

    def test_a_table_may_have_columns_that_nobody_knows(self, tmp_path):
        columns = {"KERNEL": nvprof.TABLES["KERNEL"] + " graphId novelty"}
        tables = read(write(tmp_path, names={1: "gemm"}, columns=columns, KERNEL=[{**launch(0, 5)[1], "novelty": 3}]))
        assert rows(tables, "kernels", "dur_ns") == [(100,)]

    @pytest.mark.parametrize("column", ["start", "correlationId", "gridX", "name", "deviceId"])
    @pytest.mark.parametrize("value", [None, -1, -(2**63), 2**63 - 1, 2**40, "text", b"\xff", 1.5])
    def test_absurd_values_are_read_or_refused_in_words(self, tmp_path, column, value):
        call, kernel = launch(0, 5)
        path = write(tmp_path, names={1: "gemm"}, RUNTIME=[call], KERNEL=[kernel, {**kernel, column: value}])
        try:
            readable = read(path).rows("kernels") in {1, 2}
        except DamagedTraceError as error:
            readable = path.name in error.what
        assert readable

    def test_a_file_cut_anywhere_is_refused_in_words(self, tmp_path):
        path = write(tmp_path, names={1: "gemm"}, KERNEL=[launch(0, 5)[1]], RUNTIME=[launch(0, 5)[0]])
        whole = path.read_bytes()
        for length in range(0, len(whole), max(len(whole) // 40, 1)):
            path.write_bytes(whole[:length])
            with pytest.raises(DamagedTraceError, match=r"cut short|damaged"):
                read(path)

    def test_overwritten_pages_are_read_or_refused_in_words(self, tmp_path):
        kernels = [launch(1000 * i, i)[1] for i in range(300)]
        calls = [launch(1000 * i, i)[0] for i in range(300)]
        records = [row for i in range(100) for row in range_of(i, 1000 * i, 1000 * i + 9, 1)]
        path = write(tmp_path, names={1: "gemm"}, KERNEL=kernels, RUNTIME=calls, MARKER=records)
        whole = path.read_bytes()
        refused = 0
        for begin in range(100, len(whole), 4096 + 511):
            path.write_bytes(whole[:begin] + b"\xa5" * 64 + whole[begin + 64 :])
            try:
                read(path)
            except DamagedTraceError:
                refused += 1
        assert refused > 0

    def test_a_log_beside_the_file_is_not_read_and_said(self, tmp_path):
        path = write(tmp_path, names={}, RUNTIME=[launch(0, 5)[0]])
        path.with_name(path.name + "-wal").write_bytes(b"x")
        assert "sqlite-log-ignored" in note_counts(read(path))


class TestSniff:
    def test_an_nvprof_database_is_recognised_whatever_its_suffix(self, tmp_path):
        path = write(tmp_path, names={}, name="profile.bin", RUNTIME=[])
        assert identify(path).format == "nvprof-sqlite"

    def test_a_damaged_database_is_still_recognised_by_its_catalogue(self, tmp_path):
        path = write(tmp_path, names={}, RUNTIME=[])
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DamagedTraceError, match="cut short"):
            list(identify(path).read(path, ReadRequest()))

    def test_a_database_of_nsys_is_none_of_nvprofs(self, tmp_path):
        path = tmp_path / "report.sqlite"
        database = sqlite3.connect(path)
        for table in ("StringIds", "Version", PREFIX + "RUNTIME"):
            database.execute(f"CREATE TABLE {table} (id INT)")
        database.close()
        assert NvprofSqliteReader().sniff(path.read_bytes(), path) == Match.NO

    @pytest.mark.parametrize(
        "head", [b"", b"\0" * 100, b"SQLite format 3\0", b"<?xml version='1.0'?><plist/>", b"<session>"]
    )
    def test_other_files_are_left_to_others(self, tmp_path, head):
        path = tmp_path / "file"
        path.write_bytes(head)
        assert NvprofSqliteReader().sniff(head, path) == Match.NO

    def test_a_session_of_the_visual_profiler_holds_no_data_and_tells_no_secret(self, tmp_path):
        path = tmp_path / "profile.nvvp"
        path.write_text(
            '<?xml version="1.0"?>\n<session version="2" name="a.nvvp"><executable file="/home/ann/x"/></session>'
        )
        reader = identify(path)
        with pytest.raises(DamagedTraceError, match="holds no recording") as raised:
            list(reader.read(path, ReadRequest()))
        assert "Visual Profiler" in raised.value.why
        assert "nvprof -o" in raised.value.fix
        assert "ann" not in str(raised.value)


class TestNames:
    def test_the_lists_hold_the_functions_of_both_libraries(self):
        assert (len(functions("runtime")), len(functions("driver"))) == (486, 783)
        assert function("runtime", 13) == "cudaLaunch"
        assert function("driver", 1) == "cuInit"
