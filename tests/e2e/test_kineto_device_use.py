"""Device use of real PyTorch captures equals what TraceLens printed for them."""

import csv

import pytest

FALCONSAI = "Falconsai_nsfw_image_detection__1016002"
BERT = "gaunernst_bert-small-uncased__1016001"
PREFIX = "AMD-AGI__TraceLens__"

FLOAT_NS = 2.5
"""TraceLens adds up microseconds since the machine started in 64-bit floats: each is off by up to 0.12 ns, and sums of
a hundred by a few. Where it prints 1.225309 ms, the durations in the file add up to 1.225310 ms."""


@pytest.fixture
def sections(public_traces, report_of):
    def run(name):
        file = public_traces / "kineto" / f"{PREFIX}{name}.json.gz"
        document = report_of(file, "--section", "device_use", "--section", "gpu_efficiency", "--section", "kernels")
        return {section["slug"]: section["blocks"] for section in document["sections"]}

    return run


@pytest.fixture
def timeline(public_traces):
    def load(name):
        file = public_traces / "expected" / "kineto" / f"{PREFIX}h100__{name}__gpu_timeline.csv"
        with file.open() as lines:
            return {row["type"]: float(row["time ms"]) * 1e6 for row in csv.DictReader(lines)}

    return load


def first_grid(blocks):
    return next(block["rows"] for block in blocks if "rows" in block)


@pytest.mark.parametrize(
    ("name", "times"), [(FALCONSAI, (1_225_310, 6_334_534, 7_559_844)), (BERT, (309_437, 3_598_388, 3_907_825))]
)
def test_busy_and_idle_from_first_to_last_work(name, times, sections, timeline):
    (gpu,), theirs = first_grid(sections(name)["device_use"]), timeline(name)
    assert (gpu["busy_ns"], gpu["inner_idle_ns"], gpu["extent_ns"]) == times
    assert gpu["busy_ns"] == pytest.approx(theirs["busy_time"], abs=FLOAT_NS)
    assert gpu["inner_idle_ns"] == pytest.approx(theirs["idle_time"], abs=FLOAT_NS)
    assert gpu["extent_ns"] == pytest.approx(theirs["total_time"], abs=FLOAT_NS)


def test_computation_is_the_time_in_which_kernels_run(sections, timeline):
    """In the other capture TraceLens counts fills as computation, too."""
    (gpu,) = first_grid(sections(BERT)["gpu_efficiency"])
    assert gpu["kernel_ns"] == pytest.approx(timeline(BERT)["computation_time"], abs=FLOAT_NS)
    assert gpu["kernel_ns"] == 307_197


@pytest.mark.parametrize(("name", "kernels", "total_ns"), [(FALCONSAI, 154, 1_220_926), (BERT, 60, 307_197)])
def test_kernels_and_their_time(name, kernels, total_ns, sections):
    facts = {fact["key"]: fact["value"] for fact in sections(name)["kernels"][0]["facts"]}
    assert (facts["calls"], facts["total_ns"]) == (kernels, total_ns)


@pytest.mark.parametrize("name", [FALCONSAI, BERT])
def test_every_kernel_has_figures_of_its_launch(name, sections):
    rows = next(block["rows"] for block in sections(name)["gpu_efficiency"] if block.get("title") == "Kernels")
    assert all(0 < row["sm_efficiency"] <= 1 and 0 < row["occupancy"] <= 1 for row in rows)
