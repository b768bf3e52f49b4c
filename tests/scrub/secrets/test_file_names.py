"""Private parts of file names, and the parts that stay."""

import gzip
import json
from pathlib import PurePath

import pytest

from tests.parsers.xplane.files import event, line, plane, space
from traceviz.api import convert
from traceviz.scrub import Redactor, scrub, scrub_folder, secrets_in
from traceviz.scrub.secrets.file_names import secrets_of_file_name
from traceviz.trace.tables import read_manifest

PROFILE = "logs/plugins/profile/2026_11_21_06_18_50/"


def cleaned(path):
    place = PurePath(path)
    return Redactor.of(secrets_of_file_name(place)).clean_message(place.name.encode()).decode()


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("gpu-node-17_4711.1700000000000.pt.trace.json.gz", "[removed]_4711.1700000000000.pt.trace.json.gz"),
        ("ann_4711.1700000000000.pt.trace.json", "[removed]_4711.1700000000000.pt.trace.json"),
        ("my_host_4711.1700000000000000000.pt.trace.json", "[removed]_4711.1700000000000000000.pt.trace.json"),
        ("n17.example.org_1.1700000000000.pt.trace.json", "[removed]_1.1700000000000.pt.trace.json"),
        ("10.0.0.7_4711.1700000000000.pt.trace.json", "[removed]_4711.1700000000000.pt.trace.json"),
        (f"{PROFILE}cosmo-7b.xplane.pb", "[removed].xplane.pb"),
        ("profile/2026/cosmo-7b_6009.trace.json.gz", "[removed].trace.json.gz"),
        ("2026_11_21_06_18_50/my_host7.xplane.pb", "[removed].xplane.pb"),
        # and those that can be nothing else, wherever they lie
        ("gpu-node-17.xplane.pb", "[removed].xplane.pb"),
        ("dgx03_6009.xplane.pb", "[removed].xplane.pb"),
        ("34.83.195.179_443.xplane.pb", "[removed]_443.xplane.pb"),
        ("t1v-n-bf2ca3e2-w-0.trace.json.gz", "[removed].trace.json.gz"),
        ("adas-laptop.local.trace.json.gz", "[removed].trace.json.gz"),
        ("n17.example.org.json", "[removed].json"),
    ],
)
def test_of_a_name_with_a_host_only_the_host_goes(path, clean):
    assert cleaned(path) == clean


@pytest.mark.parametrize(
    "path",
    [
        *("torch_input_bound_workers.pt.trace.json.gz", "gpu_keras_input_bound.xplane.pb", "trace.json.gz"),
        *("slow_map_128.xplane.pb", "resnet50-bs128.xplane.pb", "trace-2026-05-01.json", "rank0.pt.trace.json.gz"),
        *("run-3.pt.trace.json", "localhost_4711.1700000000000.pt.trace.json", "profile.xplane.pb", ".json", ""),
        *("resnet50_bs64.json.gz", "step100.pt.trace.json.gz", "cosmo-7b-mi300.xplane.pb", "gpt2.small.v3.json"),
        *(f"{PROFILE}trace.xplane.pb", "profile/x/cosmo-7b.pt.trace.json", "node.json", "with_node_17_done.json"),
    ],
)
def test_names_that_somebody_has_chosen_stay(path):
    assert cleaned(path) == PurePath(path).name


def test_the_host_of_an_xplane_file_goes_from_its_name(tmp_path):
    path = tmp_path / "gpu_node.xplane.pb"
    path.write_bytes(space(plane("/host:CPU", line(1, event("x", 0, 1))), hostnames=["gpu_node"]))
    assert Redactor.of(secrets_in(path)).clean_message(path.name.encode()) == b"[removed].xplane.pb"


def test_samples_keep_their_names(samples):
    paths = [path for path in samples.rglob("*") if path.name.endswith((".json.gz", ".pb", ".pb.gz", ".sqlite"))]
    redactors = {path: Redactor.of(secrets_in(path)) for path in paths}
    lost = [path.name for path in paths if b"[removed]" in redactors[path].clean_message(path.name.encode())]
    assert len(paths) > 30
    assert lost == ["sample.xplane.pb"]  # whose host is called so


def test_a_host_that_is_a_word_of_kernels_goes_from_the_name_of_the_source(tmp_path):

    called = {"ph": "X", "cat": "kernel", "name": "max kernel", "pid": 0, "tid": 7, "ts": 1, "dur": 2}
    content = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "traceEvents": [{**called, "args": {"device": 0, "stream": 7}}],
    }
    source = tmp_path / "max_4711.1700000000000.pt.trace.json.gz"
    source.write_bytes(gzip.compress(json.dumps(content).encode()))
    convert(source, tmp_path / "trace")

    (tmp_path / "clean").mkdir()
    scrub_folder(tmp_path / "trace", tmp_path / "clean", secrets_in(source))
    assert read_manifest(tmp_path / "clean")["source"] == "[removed]_4711.1700000000000.pt.trace.json.gz"
    scrub(source, tmp_path / "clean.json.gz")
    assert b"max kernel" in gzip.decompress((tmp_path / "clean.json.gz").read_bytes())
