"""Folders of samples: clock, processes, GPUs, settings, and what a sampler that was killed leaves."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.traces import codes
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import Match, ReadRequest
from traceviz.parsers.registry import identify
from traceviz.parsers.run.readers import ResourceSamplesReader
from traceviz.parsers.run.samples import PART_SCHEMA
from traceviz.trace.tables import TraceTables

START = 1_700_000_000_000_000_000
GPU = {"ordinal": 3, "name": "H200", "uuid": "GPU-1", "memory_bytes": 1000}


def write(folder, *parts, **described):
    """Return a folder of samples; a part is rows of ``ns after START, pid, gpu, metric, unit, value``."""
    facts = {
        "kind": "traceviz.resources",
        "version": 1,
        "state": "ended",
        "began_unix_ns": START,
        "wall_ns": 10_000_000_000,
        "cpu_ns": 50_000_000,
        "rate_hz": 10.0,
        "settings": {"machine.cores": "8", "env.OMP_NUM_THREADS": "4"},
        "processes": [{"pid": 20, "name": "python"}, {"pid": 10, "name": "torchrun"}],
        "gpus": [GPU],
        **described,
    }
    (folder / "resources.json").write_text(json.dumps(facts))
    for number, rows in enumerate(parts, 1):
        moved = [(START + row[0], *row[1:]) for row in rows]
        table = pa.Table.from_pylist([dict(zip(PART_SCHEMA.names, row, strict=True)) for row in moved], PART_SCHEMA)
        pq.write_table(table, folder / f"part-{number:05}.parquet")
    return folder


def read(folder, **options):
    return TraceTables(dict(ResourceSamplesReader().read(folder, ReadRequest(**options))))


CPU = (5_000, 20, None, "program CPU", "%", 150.0)
POWER = (9_000, None, 3, "GPU power", "W", 80.0)
CORE = (7_000, None, None, "core 0", "%", 100.0)


def test_samples_get_ids_and_a_clock_that_begins_with_the_first(tmp_path):
    tables = read(write(tmp_path, [CPU, CORE], [POWER]))
    assert tables.arrow("samples").to_pylist() == [
        {"start_ns": 0, "device_id": None, "process_id": 0, "metric": "program CPU", "unit": "%", "value": 150.0},
        {"start_ns": 2000, "device_id": None, "process_id": None, "metric": "core 0", "unit": "%", "value": 100.0},
        {"start_ns": 4000, "device_id": 0, "process_id": None, "metric": "GPU power", "unit": "W", "value": 80.0},
    ]
    facts = tables.run_facts()
    assert (facts["t0_unix_ns"], facts["span_ns"], facts["format"]) == (START + 5000, 4000, "resources")
    assert codes(tables) == []


def test_processes_are_those_of_samples_and_gpus_those_that_were_found(tmp_path):
    tables = read(write(tmp_path, [CPU, (6_000, 10, None, "process CPU", "%", 1.0)]))
    assert [(row["pid"], row["name"]) for row in tables.arrow("processes").to_pylist()] == [
        (10, "torchrun"),
        (20, "python"),
    ]
    (device,) = tables.arrow("devices").to_pylist()
    assert (device["ordinal"], device["name"], device["uuid"], device["memory_bytes"]) == (3, "H200", "GPU-1", 1000)


def test_settings_are_of_the_machine_the_program_and_the_cost_of_half_a_percent(tmp_path):
    tables = read(write(tmp_path, [CPU], startup_cpu_ns=170_000_000))
    assert dict(tables.settings.select("key", "value").collect().iter_rows()) == {
        "env.OMP_NUM_THREADS": "4",
        "machine.cores": "8",
        "resources.cost": "0.00500",
        "resources.rate_hz": "10",
        "resources.start_ns": "170000000",
    }


def test_only_the_tables_that_are_wanted_are_given(tmp_path):
    assert set(read(write(tmp_path, [CPU]), tables=frozenset({"settings"}))) >= {"run", "settings", "notes"}
    assert "samples" not in read(tmp_path, tables=frozenset({"settings"}))


@pytest.mark.parametrize(
    ("described", "code"),
    [
        ({"state": "recording"}, "sampler-not-ended"),
        ({"missed": 5}, "samples-missed"),
        ({"clock_step_ns": -3_600_000_000_000}, "clock-set"),
        ({"denied": 2}, "io-not-permitted"),
    ],
)
def test_what_is_missing_is_noted(tmp_path, described, code):
    assert codes(read(write(tmp_path, [CPU], **described))) == [code]


def test_four_of_100_samples_that_were_missed_are_not_worth_a_note(tmp_path):
    assert codes(read(write(tmp_path, [CPU], missed=4))) == []


@pytest.mark.parametrize(("taken", "noted"), [(74, ["samples-thinned"]), (75, [])])
def test_of_100_samples_of_the_program_a_quarter_that_the_sampler_left_out_are_noted(tmp_path, taken, noted):
    tables = read(write(tmp_path, [(number * 100_000_000, *CPU[1:]) for number in range(taken)]))
    assert codes(tables) == noted
    assert all("read 74 times, not 100 times" in message for message in tables.arrow("notes")["message"].to_pylist())


def test_a_part_that_cannot_be_read_is_left_out_and_noted(tmp_path):
    write(tmp_path, [CPU], [POWER])
    (tmp_path / "part-00001.parquet").write_bytes(b"PAR1 cut short")
    tables = read(tmp_path)
    assert (tables.rows("samples"), codes(tables)) == (1, ["samples-unreadable"])


def test_a_part_that_is_replaced_while_it_is_read_is_read_whole(tmp_path):
    """The sampler, made to replace the part after each opening of it: sizes and offsets of two files do not mix."""
    write(tmp_path, [CPU] * 3)
    part, longer = tmp_path / "part-00001.parquet", tmp_path / "longer"
    pq.write_table(pa.concat_tables([pq.read_table(part)] * 999), longer)
    opened = []

    class Replacing(type(part)):
        def open(self, *arguments, **named):
            file = super().open(*arguments, **named)
            if self.name == part.name:
                opened.append(self.name)
                longer.replace(part)
            return file

    assert read(Replacing(tmp_path)).rows("samples") == 3
    assert (opened, pq.read_metadata(part).num_rows) == ([part.name], 2997)


def test_a_folder_without_a_readable_part_is_damaged(tmp_path):
    write(tmp_path, [CPU])
    (tmp_path / "part-00001.parquet").write_bytes(b"")
    with pytest.raises(DamagedTraceError, match=r"part-00001\.parquet cannot be read"):
        read(tmp_path)


def test_a_sampler_that_took_no_sample_leaves_an_empty_table(tmp_path):
    tables = read(write(tmp_path))
    assert (tables.rows("samples"), tables.run_facts()["t0_unix_ns"], tables.run_facts()["span_ns"]) == (0, START, 0)


def test_a_newer_version_is_refused_with_its_number(tmp_path):
    with pytest.raises(DamagedTraceError, match="version 2"):
        read(write(tmp_path, [CPU], version=2))


@pytest.mark.parametrize("text", ["", "[]", "null", '{"kind": "traceviz.trace"}', "{" * 100_000, "\udc80"])
def test_other_folders_are_not_taken_for_samples(tmp_path, text):
    (tmp_path / "resources.json").write_text(text, errors="surrogateescape")
    assert ResourceSamplesReader().sniff(b"", tmp_path) == Match.NO


def test_a_folder_of_samples_is_recognised_by_1_reader(tmp_path):
    assert identify(write(tmp_path, [CPU])).format == "resources"


@pytest.mark.parametrize(
    "described",
    [
        {"settings": 5, "processes": "x", "gpus": [1, {"ordinal": "a"}, {"ordinal": 3}]},
        {"wall_ns": None, "cpu_ns": "x", "rate_hz": None, "missed": [], "clock_step_ns": "x"},
    ],
)
def test_a_strange_description_costs_no_sample(tmp_path, described):
    assert read(write(tmp_path, [CPU, POWER], **described)).rows("samples") == 2


@pytest.mark.parametrize(
    ("described", "settings"),
    [
        ({"rate_hz": "\0"}, {"resources.rate_hz": "0", "resources.cost": "0.00500"}),
        ({"rate_hz": float("inf")}, {"resources.rate_hz": "0", "resources.cost": "0.00500"}),
        ({"wall_ns": float("nan"), "missed": 10**19}, {"resources.rate_hz": "10"}),
        ({"cpu_ns": 10**400}, {"resources.rate_hz": "10", "resources.cost": "0.00000"}),
    ],
)
def test_numbers_of_the_description_that_are_none_count_as_zero(tmp_path, described, settings):
    tables = read(write(tmp_path, [CPU], **described))
    known = dict(tables.settings.select("key", "value").collect().iter_rows())
    assert {key: known[key] for key in known if key.startswith("resources.")} == settings


@pytest.mark.parametrize("gpu", [{"ordinal": 2**15}, {"ordinal": True}, {"ordinal": -1}, {"ordinal": "3"}, {}])
def test_a_gpu_whose_number_is_none_is_no_device(tmp_path, gpu):
    tables = read(write(tmp_path, [CPU, POWER], gpus=[gpu, {**GPU, "memory_bytes": 2**63}]))
    assert tables.arrow("devices").select(["ordinal", "memory_bytes"]).to_pylist() == [
        {"ordinal": 3, "memory_bytes": None}
    ]
    assert tables.arrow("samples")["device_id"].to_pylist() == [None, 0]


def test_a_process_whose_number_is_a_list_has_no_name(tmp_path):
    tables = read(write(tmp_path, [CPU], processes=[{"pid": [20], "name": "a"}]))
    assert tables.arrow("processes").select(["pid", "name"]).to_pylist() == [{"pid": 20, "name": None}]


def test_a_part_with_a_code_that_stands_for_no_word_is_left_out_and_noted(tmp_path):
    write(tmp_path, [(number, None, None, metric, "%", 1.0) for number, metric in enumerate("abc")], [POWER])
    part = tmp_path / "part-00001.parquet"
    pq.write_table(pq.read_table(part), part, compression="none", data_page_version="1.0")
    whole = part.read_bytes()
    codes_of_metrics = bytes((2, 3, 0b100100))  # two bits each, one group of eight: 0, 1, 2
    assert (whole.count(codes_of_metrics), read(tmp_path).rows("samples")) == (2, 4)  # of the times as well, before
    before, _, after = whole.rpartition(codes_of_metrics)
    part.write_bytes(before + bytes((2, 3, 0b110100)) + after)
    tables = read(tmp_path)
    assert (tables.rows("samples"), codes(tables)) == (1, ["samples-unreadable"])


@pytest.mark.parametrize("wrong", [-START, 2**62 - START, 31 * 86_400 * 10**9])
def test_1_sample_at_another_time_moves_no_other_and_is_noted(tmp_path, wrong):
    tables = read(write(tmp_path, [(wrong, *CPU[1:]), CPU, CORE, POWER]))
    assert tables.arrow("samples")["start_ns"].to_pylist() == [0, 2000, 4000]
    assert tables.run_facts()["span_ns"] == 4000
    assert codes(tables) == ["times-out-of-range"]
