"""Distinguishing four numbers with dots: addresses of machines, and versions."""

import json

import pyarrow as pa
import pytest

from tests.parsers.xplane.files import event, line, plane, space
from traceviz.scrub import scrub, secrets_in
from traceviz.scrub.secrets.addresses import addresses_in, is_version
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.secrets import secrets_of_variable
from traceviz.scrub.secrets.values import Secret
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables, load, save


@pytest.mark.parametrize(
    "text",
    [
        "CUDA 10.2.0.89",
        "cuda-10.2.89.0 and cuDNN 8.9.2.26",
        "cuDNN version: 10.2.0.89",
        "driver version 32.0.15.99",
        "Version=10.0.1.6",
        "nvidia-curand-cu12==10.3.2.106",
        "nvidia-curand-cu12        10.3.2.106",
        "libcurand.so.10.2.0.89",
        "TensorRT-10.0.1.6.Linux",
        "TensorRT 10.0.1.6: engine built",
        "cuda_nvcc: 10.0.130.5",
        "package 10.0.1.6+cuda12.0",
        "package 10.2.0.89-1+cuda10.2",
        "535.129.03",
    ],
)
def test_what_is_said_to_be_a_version_stays(text):
    assert Redactor().clean(text.encode()).decode() == text
    assert list(addresses_in(text.encode())) == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.2.0.89", "10.2.0.89"),  # without context
        ("rank 3 on 10.2.0.89", "10.2.0.89"),
        ("cuda worker at 10.2.0.89", "10.2.0.89"),
        ("conversion 10.2.0.89", "10.2.0.89"),
        ("ip.addr==10.2.0.89", "10.2.0.89"),
        ("cuda 10.2.0.89:8888", "10.2.0.89"),  # a port
        ("version 10.2.0.0/16", "10.2.0.0"),  # a mask
        ("cuda http://10.2.0.89/x", "10.2.0.89"),
        ("version 192.168.1.20", "192.168.1.20"),  # no version starts like this
        ("version 172.16.0.9", "172.16.0.9"),
        ("from 34.83.195.179", "34.83.195.179"),
        ("10.2.0.89-10.2.0.99", "10.2.0.89"),
    ],
)
def test_a_real_address_goes(text, address):
    assert address in {secret.decode() for secret in addresses_in(text.encode())}
    assert address not in Redactor().clean(text.encode()).decode()


def test_an_address_that_is_known_goes_wherever_it_stands():
    redactor = Redactor.of([Secret(b"10.2.0.89", certain=True)])
    assert redactor.clean(b"CUDA 10.2.0.89") == b"CUDA [removed]"
    assert redactor.clean_property("cuda_version", b"10.2.0.89") == b"[removed]"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("CURAND_VERSION", "10.3.4.107", True),
        ("NV_LIBCUBLAS_VERSION", "12.1.3.1-1", True),
        ("version.tensorrt", "10.0.1.6", True),
        ("driver_version", "535.129.03", True),
        ("NvDriverVersion", "32.0.15.99", True),
        ("TENSORRT", "10.0.1.6", True),
        ("MASTER_ADDR", "10.0.1.6", False),
        ("conversion", "10.0.1.6", False),
        ("version", "on 10.0.1.6", False),  # more than a version
        ("version", "10.0.1.6:8888", False),
    ],
)
def test_a_property_is_a_version_by_its_key_and_its_shape(key, value, expected):
    assert is_version(key, value) is expected
    texts = {secret.text.decode() for secret in secrets_of_variable(key.encode(), value.encode())}
    assert ("10.0.1.6" in texts) is (not expected and "10.0.1.6" in value)


def settings(**values):
    count = len(values)
    columns = {column.name: pa.nulls(count, pa.string()) for column in schema.table("settings").columns}
    stated = {"key": pa.array(list(values)), "value": pa.array(list(values.values()))}
    return pa.table({**columns, **stated})


def test_versions_stay_in_settings_and_addresses_go(tmp_path):
    stated = {"env.CURAND_VERSION": "10.3.4.107", "version.tensorrt": "10.0.1.6", "platform": "at 10.0.0.9"}
    save(TraceTables({"settings": settings(**stated)}), tmp_path / "trace")
    scrub(tmp_path / "trace", tmp_path / "clean")
    assert load(tmp_path / "clean").arrow("settings")["value"].to_pylist() == [
        "10.3.4.107",
        "10.0.1.6",
        "at [removed]",
    ]


def test_an_address_in_a_setting_that_is_private_goes_from_versions_too(tmp_path):
    stated = {"version.x": "10.0.0.9", "platform": "10.0.0.9"}
    save(TraceTables({"settings": settings(**stated)}), tmp_path / "trace")
    scrub(tmp_path / "trace", tmp_path / "clean")
    assert load(tmp_path / "clean").arrow("settings")["value"].to_pylist() == ["[removed]", "[removed]"]


def test_versions_stay_in_json_traces_and_addresses_go(tmp_path):
    called = {"ph": "X", "cat": "cpu_op", "name": "op on 10.0.0.9", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    args = {"cudnn_version": "10.2.0.89", "peer": "10.0.0.7", "note": "cuDNN 10.2.0.89"}
    document = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "versions": {"tensorrt": "10.0.1.6"},
        "traceEvents": [{**called, "args": args}],
    }
    source = tmp_path / "t.json"
    source.write_text(json.dumps(document))
    scrub(source, tmp_path / "clean.json")
    clean = json.loads((tmp_path / "clean.json").read_text())
    assert clean["versions"] == {"tensorrt": "10.0.1.6"}
    (written,) = clean["traceEvents"]
    assert written["name"] == "op on [removed]"
    assert written["args"] == {"cudnn_version": "10.2.0.89", "peer": "[removed]", "note": "cuDNN 10.2.0.89"}


def test_versions_of_containers_are_no_secrets(tmp_path):
    block = b"\0PATH=/usr/bin\0CURAND_VERSION=10.3.4.107\0MASTER_ADDR=10.0.0.9\0\0"
    (tmp_path / "r.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 1.\n" + block)
    texts = {secret.text for secret in secrets_in(tmp_path / "r.nsys-rep")}
    assert b"10.0.0.9" in texts
    assert b"10.3.4.107" not in texts


def test_versions_stay_in_xplane_files_and_addresses_go(tmp_path):
    stats = {"cudnn_version": "10.2.0.89", "device_type": "at 10.0.0.9"}
    host = plane("/host:CPU", line(1, event("peer 10.0.0.7", 0, 9)), stats=stats)
    (tmp_path / "trace.xplane.pb").write_bytes(space(host))
    scrub(tmp_path / "trace.xplane.pb", tmp_path / "clean.pb")
    written = (tmp_path / "clean.pb").read_bytes()
    assert b"10.2.0.89" in written
    assert b"at [removed]" in written
    assert b"peer [removed]" in written
