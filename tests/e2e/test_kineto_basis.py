"""`traceviz report --basis kineto` on real captures gives what PyTorch's TensorBoard plugin printed for them."""

import json
import re

import pytest

RESNET = "pytorch__kineto__worker0.1623143089861"
COLUMNS = {
    "kernel_ns": "Kernel",
    "memcpy_ns": "Memcpy",
    "memset_ns": "Memset",
    "runtime_ns": "Runtime",
    "data_loader_ns": "DataLoader",
    "cpu_exec_ns": "CPU Exec",
    "other_ns": "Other",
}


@pytest.fixture
def report(public_traces, report_of):
    def run(name, *sections):
        options = [word for slug in sections for word in ("--section", slug)]
        document = report_of(public_traces / "kineto" / name, "--basis", "kineto", *options)
        return {section["slug"]: section["blocks"] for section in document["sections"]}

    return run


@pytest.fixture
def resnet(report):
    return report(f"{RESNET}.pt.trace.json.gz", "breakdown")["breakdown"]


@pytest.fixture
def overview(public_traces):
    """The first of the pages that the plugin made; the file holds one per line."""
    text = (public_traces / "expected" / "kineto" / f"{RESNET}__tb_plugin.txt").read_text()
    return json.JSONDecoder().raw_decode(text)[0]


def facts(blocks):
    return {fact["key"]: fact["value"] for block in blocks if "facts" in block for fact in block["facts"]}


def rows(blocks, title):
    return next(block["rows"] for block in blocks if block.get("title") == title)


def test_every_step_has_the_plugin_s_classes_to_the_microsecond(resnet, overview):
    names = [column["name"] for column in overview["steps"]["columns"] if "name" in column]
    theirs = [dict(zip(names, (row[0], *row[1::2]), strict=True)) for row in overview["steps"]["rows"]]
    mine = rows(resnet, "Steps")
    assert [row["stepnum"] for row in mine] == [row["Step"] for row in theirs] == ["5", "6", "7", "8", "9", "10"]
    for own, row in zip(mine, theirs, strict=True):
        assert {column: own[key] / 1000 for key, column in COLUMNS.items()} == {c: row[c] for c in COLUMNS.values()}
        assert own["communication_ns"] == 0
        assert own["step_ns"] == sum(own[key] for key in COLUMNS)


def test_the_average_step_is_the_plugin_s_to_the_microsecond(resnet, overview):
    (average,) = overview["performance"]
    mine = {row["label"]: row for row in rows(resnet, "Average step")}
    assert round(facts(resnet)["average_step_ns"] / 1000) == average["value"] == 177_592
    assert list(mine) == [child["name"] for child in average["children"]]
    for child in average["children"]:
        assert round(mine[child["name"]]["per_step_ns"] / 1000) == child["value"], child["name"]
        assert round(100 * mine[child["name"]]["share_of_step"], 2) == child["extra"], child["name"]


def test_figures_of_the_gpu_are_the_plugin_s_to_the_printed_digit(resnet, overview):
    printed = {entry["title"]: entry["value"] for entry in overview["gpu_metrics"]["data"]}
    (gpu,) = rows(resnet, "GPUs")
    assert {
        "GPU Utilization": gpu["utilisation"],
        "Est. SM Efficiency": gpu["sm_efficiency"],
        "Est. Achieved Occupancy": gpu["occupancy"],
        "Kernel Time using Tensor Cores": gpu["tensor_core_share"],
    } == {
        title: pytest.approx(float(printed[title].removesuffix(" %")) / 100, abs=5.01e-5)
        for title in (
            "GPU Utilization",
            "Est. SM Efficiency",
            "Est. Achieved Occupancy",
            "Kernel Time using Tensor Cores",
        )
    }
    assert (gpu["utilisation"], gpu["occupancy"]) == (pytest.approx(0.5551, abs=5e-5), pytest.approx(0.4913, abs=5e-5))


def test_recommendations_are_in_the_plugin_s_words(resnet, overview):
    words = re.findall("<li>(.*?)</li>", overview["recommendations"])
    assert facts(resnet)["recommendations"] == " ".join(re.sub("<[^>]*>", "", sentence) for sentence in words)


def test_our_figures_of_the_gpu_are_close_and_judged_on_our_steps(report):
    figures = facts(report(f"{RESNET}.pt.trace.json.gz", "gpu_efficiency")["gpu_efficiency"])
    assert figures["sm_efficiency"] == pytest.approx(0.5468, abs=0.01)
    assert figures["occupancy"] == pytest.approx(0.4913, abs=0.005)
    assert figures["known_share"] == 1.0


def test_steps_are_not_counted_twice_where_the_device_shows_them_too(report):
    blocks = report("AMD-AGI__TraceLens__Falconsai_nsfw_image_detection__1016002.json.gz", "breakdown")["breakdown"]
    (step,) = rows(blocks, "Steps")
    assert (step["stepnum"], step["step_ns"]) == ("6", 7_894_065)
    assert (step["kernel_ns"], step["memset_ns"]) == (1_220_926, 4_384)
