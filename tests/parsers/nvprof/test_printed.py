"""Printed output of nvprof: traces and summaries, as CSV and as columns of text, with log lines anywhere."""

import gzip

import pytest

from tests.support.traces import codes, read, rows
from traceviz.core.errors import DamagedTraceError, UnknownFormatError
from traceviz.parsers.base import Match, ReadRequest
from traceviz.parsers.nvprof.readers import NvprofCsvReader
from traceviz.parsers.registry import identify
from traceviz.trace.tables import TraceTables

GPU_HEADER = (
    '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread",'
    '"Static SMem","Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Name",'
    '"Correlation_ID"'
)
GPU_UNITS = "s,ms,,,,,,,,KB,KB,MB,GB/s,,,,,,,"
KERNEL = '10.594882,0.089064,8,2,1,256,1,1,19,3.250000,0.000000,,,,,"Tegra X1 (0)","1","20","void f(int, float)",337'
COPY = (
    '10.469281,0.002448,,,,,,,,,,0.000122,0.048697,"Pinned","Device","Tegra X1 (0)","1","21","[CUDA memcpy HtoD]",318'
)
FILL = '10.466675,0.010677,,,,,,,,,,0.000980,0.089669,"Device",,"Tegra X1 (0)","1","7","[CUDA memset]",304'
GPU = f"{GPU_HEADER}\n{GPU_UNITS}\n{FILL}\n{COPY}\n{KERNEL}\n"

SUMMARY = """\
"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"
,%,ms,,us,us,ms,
"GPU activities",68.75,268.352834,6000,44.725000,43.106000,1.791976,"flux(int, float*)"
"GPU activities",31.25,19.103987,2000,9.551000,8.992000,0.014209,"[CUDA memcpy DtoD]"
"API calls",100.0,5.5,3,1.833333,0.100000,5.000000,"cudaMalloc"
"""

TEXT_TRACE = """\
==9733== NVPROF is profiling process 9733, command: ./add --key s3cret
==9733== Profiling result:
   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  \
SrcMemType  DstMemType           Device   Context    Stream  Name
491.48ms  25.952us                    -               -         -         -         -  4.0000KB  3.0167GB/s    \
Pageable      Device     Tesla T4 (0)         1         7  [CUDA memcpy HtoD]
==9733== Warning: something in between
520.22ms  519.71us             (64 2 1)      (1024 1 1)        16        0B  1.0000KB         -           -           \
-           -     Tesla T4 (0)         1         7  add(int  const *, int*) [128]

Regs: Number of registers used per CUDA thread.
SSMem: Static shared memory allocated per CUDA block.
"""

TEXT_SUMMARY = """\
==21== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   99.28%  1.4175ms         1  1.4175ms  1.4175ms  1.4175ms  [CUDA memcpy HtoD]
                    0.41%  5.9200us         1  5.9200us  5.9200us  5.9200us  reduce(float*, int)
      API calls:   97.00%  180.20ms         2  90.100ms  4.4000us  180.20ms  cudaMalloc
                    3.00%  5.2000ms        94  55.319us     110ns  3.1000ms  cuDeviceGetAttribute
 OpenACC (excl):  100.00%  7.0000ms         7  1.0000ms  1.0000ms  1.0000ms  acc_compute_construct@a.c:47

==21== Unified Memory profiling result:
Device "Tesla T4 (0)"
   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name
       2  256.00KB  256.00KB  256.00KB  512.0000KB  50.11200us  Host To Device
       1         -         -         -           -  228.1900us  Gpu page fault groups
Total CPU Page faults: 9
"""


def write(folder, text, name="trace.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


class TestCsvTrace:
    def test_times_and_sizes_are_exact_in_their_units(self, tmp_path):
        tables = read(write(tmp_path, GPU))
        assert rows(tables, "memset", "start_ns", "dur_ns", "bytes") == [(0, 10_677, 1_028)]
        assert rows(tables, "memcpy", "start_ns", "dur_ns", "bytes") == [(2_606_000, 2_448, 128)]
        assert rows(tables, "kernels", "start_ns", "dur_ns") == [(128_207_000, 89_064)]
        assert tables.run_facts()["span_ns"] == 128_296_064

    def test_kernels_keep_their_shape_place_and_correlation(self, tmp_path):
        (kernel,) = read(write(tmp_path, GPU)).kernels.collect().to_dicts()
        assert [kernel[f"{part}_{axis}"] for part in ("grid", "block") for axis in "xyz"] == [8, 2, 1, 256, 1, 1]
        assert (kernel["registers_per_thread"], kernel["static_shared_bytes"]) == (19, 3_328)
        assert (kernel["name"], kernel["correlation_id"], kernel["stream"]) == ("void f(int, float)", 337, 20)

    def test_copies_have_a_direction_and_kinds_of_memory(self, tmp_path):
        tables = read(write(tmp_path, GPU))
        assert rows(tables, "memcpy", "kind", "src_memory", "dst_memory") == [("h2d", "pinned", "device")]
        assert rows(tables, "memset", "memory") == [("device",)]

    def test_devices_have_a_product_and_a_number(self, tmp_path):
        second = KERNEL.replace("(0)", "(3)").replace("Tegra X1", "Tesla (Rev. B)")
        tables = read(write(tmp_path, GPU + second + "\n"))
        assert rows(tables, "devices", "name", "ordinal") == [("Tegra X1", 0), ("Tesla (Rev. B)", 3)]
        assert sorted(rows(tables, "kernels", "device_id")) == [(0,), (1,)]

    def test_api_calls_have_a_domain_and_no_thread_and_launches_lose_their_kernel(self, tmp_path):
        text = (
            '"Start","Duration","Name","Correlation_ID"\nus,us,,\n'
            '0.000000,2.866000,"cuDeviceGetCount",1\n3.5,0.952000,"cudaLaunchKernel (f(int, float) [108])",2\n'
        )
        tables = read(write(tmp_path, text))
        calls = rows(tables, "cuda_api", "start_ns", "dur_ns", "name", "domain", "correlation_id")
        assert calls == [(0, 2866, "cuDeviceGetCount", "driver", 1), (3500, 952, "cudaLaunchKernel", "runtime", 2)]
        assert "kernels" not in tables
        assert "threads-unknown" in codes(tables)

    def test_both_traces_in_one_table_are_told_apart(self, tmp_path):
        call = '10.400000,0.500000,,,,,,,,,,,,,,,,,"cudaMalloc",300'
        tables = read(write(tmp_path, GPU + call + "\n"))
        assert rows(tables, "cuda_api", "start_ns", "dur_ns", "name") == [(0, 500_000, "cudaMalloc")]
        assert (tables.rows("kernels"), tables.rows("memcpy"), tables.rows("memset")) == (1, 1, 1)

    def test_without_api_calls_the_api_was_not_printed(self, tmp_path):
        assert "cuda_api" not in read(write(tmp_path, GPU))

    def test_log_lines_and_output_of_the_program_may_stand_anywhere(self, tmp_path):
        lines = GPU.splitlines()
        log = "==7== NVPROF is profiling process 7, command: /home/ann/train.py -x"
        noise = ["epoch,loss", "==7== Warning: here, too", "", "loss 1,5"]
        between = [line for row in lines[2:] for line in (row, *noise)]
        tables = read(write(tmp_path, "\n".join([log, *noise, *lines[:2], *between, *noise])))
        assert (tables.rows("kernels"), tables.rows("memcpy"), tables.rows("memset")) == (1, 1, 1)
        assert rows(tables, "processes", "pid", "name") == [(7, "train.py")]

    def test_rows_without_a_duration_have_none(self, tmp_path):
        tables = read(write(tmp_path, GPU.replace(",0.089064,", ",,")))
        assert rows(tables, "kernels", "dur_ns") == [(None,)]

    def test_a_row_that_is_cut_is_left_out_and_noted(self, tmp_path):
        tables = read(write(tmp_path, GPU + "10.6,0.0012,8,2"))
        assert tables.rows("kernels") == 1
        assert rows(tables, "notes", "code", "count") == [
            ("row-damaged", 1),
            ("file-cut", None),
            ("times-rounded", None),
        ]

    def test_rows_that_are_no_event_are_noted(self, tmp_path):
        names = ["[Range start] epoch", "[Unified Memory CPU page faults]", "[strange]"]
        extra = [f'10.1,,,,,,,,,,,,,,,,,,"{name}",' for name in names]
        tables = read(write(tmp_path, GPU + "\n".join([*extra, ""])))
        assert codes(tables) == ["unified-memory", "ranges-left-out", "row-unknown", "times-rounded"]

    def test_the_framework_shows_in_its_kernels(self, tmp_path):
        tables = read(write(tmp_path, GPU.replace("void f(", "void tensorflow::functor::f(")))
        assert tables.run_facts()["framework"] == "TensorFlow"

    def test_mangled_names_are_demangled(self, tmp_path):
        tables = read(write(tmp_path, GPU.replace('"void f(int, float)"', '"_Z1fi"')))
        assert rows(tables, "kernels", "name") == [("f(int)",)]

    def test_a_trace_without_units_is_refused(self, tmp_path):
        path = write(tmp_path, GPU.replace(GPU_UNITS + "\n", ""))
        with pytest.raises(DamagedTraceError, match="units"):
            read(path)

    def test_bytes_that_are_no_text_are_kept_as_replacement(self, tmp_path):
        tables = read(write(tmp_path, GPU.encode().replace(b"void f", b"void \xff")))
        assert rows(tables, "kernels", "name") == [("void \ufffd(int, float)",)]

    def test_windows_line_ends_change_nothing(self, tmp_path):
        tables = read(write(tmp_path, GPU.replace("\n", "\r\n")))
        assert rows(tables, "kernels", "dur_ns", "correlation_id") == [(89_064, 337)]


class TestTextTrace:
    def test_columns_of_text_give_the_same_tables(self, tmp_path):
        tables = read(write(tmp_path, TEXT_TRACE))
        (kernel,) = tables.kernels.collect().to_dicts()
        assert (kernel["start_ns"], kernel["dur_ns"], kernel["name"]) == (
            28_740_000,
            519_710,
            "add(int  const *, int*)",
        )
        assert (kernel["grid_x"], kernel["grid_y"], kernel["block_x"]) == (64, 2, 1024)
        assert (kernel["dynamic_shared_bytes"], kernel["correlation_id"]) == (1024, 128)
        assert rows(tables, "memcpy", "kind", "src_memory", "bytes") == [("h2d", "pageable", 4096)]
        assert codes(tables) == ["profiler-diagnostic", "times-rounded"]  # the file warns of something

    def test_migrations_of_unified_memory_are_copies(self, tmp_path):
        text = (
            "======== Profiling result:\n"
            "   Start  Duration  Grid Size  Device  Unified Memory  Virtual Address  Name\n"
            "488.05ms         -          -       -   PC 0x46de3225  0x7612d2000000  [Unified Memory CPU page faults]\n"
            "491.48ms  25.952us          -  T4 (0)    256.000000KB  0x7612d2000000  [Unified Memory Memcpy HtoD]\n"
        )
        tables = read(write(tmp_path, text))
        copies = rows(tables, "memcpy", "dur_ns", "kind", "src_memory", "dst_memory", "bytes")
        assert copies == [(25_952, "h2d", "managed", "managed", 262_144)]

    def test_a_row_on_a_page_between_processors_names_no_device(self, tmp_path):
        text = (
            "==7== Warning: 2 records have invalid timestamps due to a small /tmp/buffer.\n"
            "======== Profiling result:\n"
            "   Start  Duration  Grid Size       Device  Unified Memory  Virtual Address  Name\n"
            "491.48ms  25.952us          -       T4 (0)    256.000000KB  0x761d2000000  [Unified Memory Memcpy HtoD]\n"
            "491.49ms         -          -  CPU, T4 (0           4.0KB  0x761d2000000  [Unified Memory page thrash]\n"
        )
        tables = read(write(tmp_path, text))
        assert rows(tables, "devices", "ordinal", "name") == [(0, "T4")]
        noted = [row for row in tables.arrow("notes").to_pylist() if row["code"] == "profiler-diagnostic"]
        assert [(row["severity"], row["message"]) for row in noted] == [
            ("warning", "nvprof: 2 records have invalid timestamps due to a small [path]")
        ]

    def test_a_gzip_file_is_read_as_its_text_and_up_to_where_it_is_cut(self, tmp_path):
        path = tmp_path / "x.txt.gz"
        path.write_bytes(gzip.compress(GPU.encode()))
        plain = read(write(tmp_path, GPU))
        assert {name: read(path).rows(name) for name in plain} == {name: plain.rows(name) for name in plain}
        path.write_bytes(gzip.compress(GPU.encode(), 0)[:-40])
        assert "damaged" in codes(read(path))

    def test_the_command_line_is_private(self, tmp_path):
        path = write(tmp_path, TEXT_TRACE)
        assert read(path).run_facts()["command"] is None
        assert read(path, keep_private=True).run_facts()["command"] == "./add --key s3cret"


def test_a_file_that_ends_within_a_line_may_be_cut_and_says_so(tmp_path):
    for text, noted in ((GPU[:-2], True), (GPU, False), (SUMMARY[:-3], True), (SUMMARY, False)):
        tables = read(write(tmp_path, text))
        assert ("file-cut" in codes(tables), tables.rows("notes")) == (noted, 1 + noted), text[-40:]


class TestSummary:
    def test_each_number_has_the_unit_of_its_column(self, tmp_path):
        tables = read(write(tmp_path, SUMMARY))
        summed = rows(tables, "totals", "kind", "name", "calls", "total_ns", "mean_ns", "min_ns", "max_ns")
        assert summed == [
            ("kernel", "flux(int, float*)", 6000, 268_352_834, 44_725, 43_106, 1_791_976),
            ("copy", "[CUDA memcpy DtoD]", 2000, 19_103_987, 9_551, 8_992, 14_209),
            ("runtime", "cudaMalloc", 3, 5_500_000, 1_833, 100, 5_000_000),
        ]
        assert codes(tables) == ["summary-only"]
        assert not {"kernels", "cuda_api"} & set(tables)

    def test_text_has_a_type_only_on_the_first_row_of_it(self, tmp_path):
        summed = rows(read(write(tmp_path, TEXT_SUMMARY)), "totals", "kind", "name", "calls", "total_ns")
        assert summed == [
            ("copy", "[CUDA memcpy HtoD]", 1, 1_417_500),
            ("kernel", "reduce(float*, int)", 1, 5_920),
            ("runtime", "cudaMalloc", 2, 180_200_000),
            ("driver", "cuDeviceGetAttribute", 94, 5_200_000),
            ("other", "acc_compute_construct@a.c:47", 7, 7_000_000),
            ("unified_memory", "Host To Device", 2, 50_112),
            ("unified_memory", "Gpu page fault groups", 1, 228_190),
            ("unified_memory", "CPU page faults", 9, None),
        ]

    def test_sizes_of_unified_memory_have_the_unit_of_their_column_where_they_carry_none(self, tmp_path):
        header = '"Device","Count","Avg Size","Min Size","Max Size","Total Size","Total Time","Name"'
        row = '"T4 (0)",158,40.860352,4.000000,600.000000,6.250000,0.250000,"Host To Device"'
        text = f"==7== Unified Memory profiling result:\n{header}\n,,KB,KB,KB,MB,ms,\n{row}\n"
        summed = rows(read(write(tmp_path, text)), "totals", "calls", "bytes", "total_ns")
        assert summed == [(158, 6_553_600, 250_000)]

    def test_summaries_of_unified_memory_know_bytes_and_device(self, tmp_path):
        tables = read(write(tmp_path, TEXT_SUMMARY))
        summed = tables.totals.filter(name="Host To Device").select("bytes", "device_id").collect().rows()
        assert summed == [(524_288, 0)]
        assert rows(tables, "devices", "name", "ordinal") == [("Tesla T4", 0)]

    def test_faults_that_csv_states_in_bytes_are_a_number(self, tmp_path):
        text = (
            '"Device","Count","Avg Size","Min Size","Max Size","Total Size","Total Time",""\n'
            '"X (0)",158,40.860352KB,4.000000KB,600.000000KB,6.304688MB,0.000000,"Host To Device"\n'
            '"X (0)",,,,,16B,0.000000,"Gpu page fault groups"\nTotal CPU Page faults: 49\n'
        )
        summed = rows(read(write(tmp_path, text)), "totals", "name", "calls", "bytes", "total_ns")
        assert summed == [
            ("Host To Device", 158, 6_610_945, None),
            ("Gpu page fault groups", 16, None, None),
            ("CPU page faults", 49, None, None),
        ]

    def test_before_cuda_9_the_title_says_what_the_rows_are(self, tmp_path):
        text = (
            "==5== Profiling result:\nTime(%)      Time     Calls       Avg       Min       Max  Name\n"
            " 99.94%  1.3959s       301  4.6375ms  4.5966ms  4.7082ms  matrixMul(float*, int)\n\n"
            "==5== API calls:\nTime(%)      Time     Calls       Avg       Min       Max  Name\n"
            " 87.90%  1.3981s         1  1.3981s  1.3981s  1.3981s  cudaEventSynchronize\n"
        )
        summed = rows(read(write(tmp_path, text)), "totals", "kind", "name", "total_ns")
        assert summed == [
            ("kernel", "matrixMul(float*, int)", 1_395_900_000),
            ("runtime", "cudaEventSynchronize", 1_398_100_000),
        ]

    def test_nothing_profiled_is_empty_and_not_absent(self, tmp_path):
        text = "==9== Profiling result:\nNo kernels were profiled.\nNo API activities were profiled.\n"
        tables = read(write(tmp_path, text))
        assert {"kernels", "memcpy", "memset", "cuda_api"} <= set(tables)
        assert codes(tables) == ["nothing-profiled", "nothing-profiled"]

    def test_a_log_without_a_result_is_refused(self, tmp_path):
        path = write(tmp_path, "==9== NVPROF is profiling process 9, command: a\nhello\n")
        with pytest.raises(DamagedTraceError, match="no result"):
            read(path)


class TestSniff:
    @pytest.mark.parametrize("text", [GPU, SUMMARY, TEXT_TRACE, TEXT_SUMMARY])
    def test_what_nvprof_prints_is_recognised_whatever_its_suffix(self, tmp_path, text):
        assert identify(write(tmp_path, text, "log")).format == "nvprof-csv"

    @pytest.mark.parametrize(
        "text", ["", "a,b\n1,2\n", "Start the program\n", '{"traceEvents": []}', "Start,End,Name\n", "Device  Count\n"]
    )
    def test_other_texts_are_none_of_nvprofs(self, tmp_path, text):
        assert NvprofCsvReader().sniff(text.encode(), tmp_path / "file") == Match.NO

    @pytest.mark.parametrize("text", [GPU, SUMMARY, TEXT_TRACE, TEXT_SUMMARY])
    def test_a_file_cut_anywhere_is_read_so_far_or_refused_in_words(self, tmp_path, text):
        kernels = 0
        for length in (*range(0, len(text), 41), len(text)):
            try:
                kernels = max(kernels, read(write(tmp_path, text[:length])).rows("kernels"))
            except (DamagedTraceError, UnknownFormatError) as error:
                assert "trace.csv" in error.what  # noqa: PT017 (either outcome is right)
        assert kernels == (text in {GPU, TEXT_TRACE})


def test_a_bare_carriage_return_in_a_header_is_a_blank(tmp_path):
    header = GPU_HEADER.replace('"Throughput"', "Through\rput")
    tables = read(write(tmp_path, f"{header}\n{GPU_UNITS}\n{KERNEL}\n"))
    assert tables.arrow("kernels")["dur_ns"].to_pylist() == [89_064]


def test_a_bare_carriage_return_in_the_units_leaves_the_other_units(tmp_path):
    units = GPU_UNITS.replace("GB/s", "G\rB/s")
    with pytest.raises(DamagedTraceError, match="does not say in which units its times are"):
        read(write(tmp_path, f"{GPU_HEADER}\n{units}\n{KERNEL}\n"))


def test_a_cell_of_more_than_131072_characters_in_a_header_is_a_label_that_nobody_knows(tmp_path):
    header = "==7== Profiling result:\n" + GPU_HEADER.replace("Throughput", "x" * 140_000)
    tables = read(write(tmp_path, f"{header}\n{GPU_UNITS}\n{KERNEL}\n"))
    assert tables.arrow("kernels")["grid_x"].to_pylist() == [8]


def test_a_cell_of_more_than_131072_characters_in_the_units_is_no_unit(tmp_path):
    with pytest.raises(DamagedTraceError, match="does not say in which units its times are"):
        read(write(tmp_path, f"{GPU_HEADER}\n{GPU_UNITS}{'x' * 140_000}\n{KERNEL}\n"))


def test_a_name_of_more_than_131072_characters_in_a_summary_keeps_its_row(tmp_path):
    text = SUMMARY.replace("flux(int, float*)", 'a ""b"", ' + "f" * 140_000)
    totals = read(write(tmp_path, text)).arrow("totals").to_pylist()
    assert [row["calls"] for row in totals] == [6000, 2000, 3]
    assert totals[0]["name"].startswith('a "b", fff')


def test_of_two_columns_of_one_name_the_first_counts(tmp_path):
    header = GPU_HEADER.replace("Block X", "Grid X")
    tables = read(write(tmp_path, f"{header}\n{GPU_UNITS}\n{KERNEL}\n"))
    assert tables.arrow("kernels").select(["grid_x", "block_x"]).to_pylist() == [{"grid_x": 8, "block_x": None}]


@pytest.mark.parametrize("wrong", ["900000000", "4000000000.5"])
def test_1_printed_start_of_years_is_left_out_and_3_rows_stay_where_they_are(tmp_path, wrong):
    path = tmp_path / "t.csv"
    path.write_text(GPU + KERNEL.replace("10.594882", wrong) + "\n")
    tables = TraceTables(dict(NvprofCsvReader().read(path, ReadRequest())))
    assert [tables.rows(name) for name in ("kernels", "memcpy", "memset")] == [1, 1, 1]
    assert tables.run_facts()["span_ns"] == 10_594_882_000 + 89_064 - 10_466_675_000
    assert ("times-out-of-range", 1) in [(row["code"], row["count"]) for row in tables.arrow("notes").to_pylist()]


def test_1_printed_duration_of_31_days_is_not_known(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(GPU.replace("0.089064", "2678400000"))
    tables = TraceTables(dict(NvprofCsvReader().read(path, ReadRequest())))
    assert tables.arrow("kernels")["dur_ns"].to_pylist() == [None]
    assert tables.run_facts()["span_ns"] == 10_594_882_000 - 10_466_675_000
    assert ("durations-out-of-range", 1) in [(row["code"], row["count"]) for row in tables.arrow("notes").to_pylist()]
