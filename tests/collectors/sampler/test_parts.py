"""Parts of samples: written whole, in order, with what is not known as null."""

import json

import pyarrow.parquet as pq

from traceviz.collectors.sampler import metrics
from traceviz.collectors.sampler.metrics import Reading
from traceviz.collectors.sampler.parts import PART_NS, SCHEMA, PartWriter
from traceviz.parsers.run.samples import PART_SCHEMA


def test_writer_and_reader_agree_on_6_columns():
    assert SCHEMA.equals(PART_SCHEMA)
    assert len(SCHEMA) == 6


def test_a_part_grows_with_every_flush_and_keeps_nulls(tmp_path):
    writer = PartWriter(tmp_path)
    writer.add(1_000, [Reading(metrics.PROGRAM_CPU, 250.5, pid=7)])
    writer.flush({"state": "recording"})
    writer.add(2_000, [Reading(metrics.GPU_POWER, 99.0, gpu=1), Reading(metrics.core(3), 50.0)])
    writer.flush({"state": "ended"})
    assert pq.read_table(tmp_path / "part-00001.parquet").to_pylist() == [
        {"unix_ns": 1000, "pid": 7, "gpu": None, "metric": "program CPU", "unit": "%", "value": 250.5},
        {"unix_ns": 2000, "pid": None, "gpu": 1, "metric": "GPU power", "unit": "W", "value": 99.0},
        {"unix_ns": 2000, "pid": None, "gpu": None, "metric": "core 3", "unit": "%", "value": 50.0},
    ]
    described = json.loads((tmp_path / "resources.json").read_text())
    assert (described["state"], described["samples"], described["parts"]) == ("ended", 2, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-00001.parquet", "resources.json"]


def test_of_three_moments_with_6_readings_two_measured_the_host(tmp_path):
    """Samples are moments, as in the report: neither values nor what GPUs were asked between them."""
    writer = PartWriter(tmp_path)
    writer.add(1_000, [Reading(metrics.PROGRAM_CPU, 1.0), Reading(metrics.PROGRAM_RSS, 2.0)])
    writer.add(1_000, [Reading(metrics.core(0), 3.0)])
    writer.add(2_000, [Reading(metrics.GPU_POWER, 4.0, gpu=0)])
    writer.add(3_000, [Reading(metrics.PROGRAM_RSS, 5.0), Reading(metrics.GPU_POWER, 6.0, gpu=0)])
    writer.flush({})
    assert json.loads((tmp_path / "resources.json").read_text())["samples"] == 2


def test_another_part_begins_after_half_a_minute(tmp_path):
    writer = PartWriter(tmp_path)
    for at in (0, PART_NS - 1, PART_NS, PART_NS + 5):
        writer.add(at, [Reading(metrics.PROGRAM_RSS, 1.0)])
        writer.flush({})
    rows = [pq.read_metadata(tmp_path / f"part-{number:05}.parquet").num_rows for number in (1, 2)]
    assert rows == [2, 2]


def test_a_flush_without_samples_writes_the_description_alone(tmp_path):
    PartWriter(tmp_path).flush({"state": "ended"})
    assert [path.name for path in tmp_path.iterdir()] == ["resources.json"]
