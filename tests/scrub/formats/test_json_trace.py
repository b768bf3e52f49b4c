"""Scrubbing JSON traces of PyTorch, TensorFlow and JAX: what goes, what stays, and what is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.parsers.kineto.files import complete, trace
from traceviz.core.errors import DamagedTraceError, OutputExistsError
from traceviz.scrub import scrub, secrets_in
from traceviz.scrub.formats import json_text

SECRETS = (
    "ada",
    "Ada Lovelace",
    "gpu-node-17",
    "tok-3f9a8b7c6d5e",
    "hunter2-zz",
    "10.0.0.7",
    "/home",
    "/weird",
    "quux-zebra-77",
    "line of the log",
)
HEADER = {
    "host_name": "gpu-node-17",
    "traceName": "/home/ada/runs/out.json",
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85018279936}],
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2, "pg_config": [{"pg_desc": "default_pg"}]},
    "environ": {"API_TOKEN": "tok-3f9a8b7c6d5e", "SETTING": "quux-zebra-77", "HOME": "/home/ada"},
    "argv": ["python", "train.py", "--password", "hunter2-zz"],
    "INFO": ["line of the log of Ada Lovelace"],
    "nccl_version": "2.17.1",
}


def leaky() -> bytes:
    """Return a trace with something private in each place for a text."""
    named = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "/home/ada/bin/python"}}
    texts = {
        "user": "Ada Lovelace",
        "env": {"NESTED": {"deep": "quux-zebra-77"}},
        "note": "key tok-3f9a8b7c6d5e",
        "Call stack": "ada/models/net.py(3): f;/weird/place/g.py(4): g",
        "shapes": ["[2, 3]", "on gpu-node-17"],
        "escaped": "ESCAPED",
        "Ev Idx": 7,
    }
    return trace(
        [
            named,
            complete("aten::mm", 10, 20, category="cpu_op", args=texts),
            complete("/home/ada/code/train.py(12): step", 10, 20, category="python_function"),
            complete("/usr/lib/python3/site-packages/torch/utils/data/dataloader.py(5): next", 1, 2),
            complete("torch/optim/sgd.py(7): step", 30, 2, category="python_function"),
            complete("load /home/ada/x.bin from 10.0.0.7:8080", 40, 5, category="user_annotation"),
            complete("quux-zebra-77", 50, 5, category="user_annotation"),
        ],
        header=HEADER,
    ).replace(b"ESCAPED", rb"at \/home\/ada\u002fx.bin with \"quotes\"")


def scrubbed(folder: Path, content: bytes, name: str = "trace.json") -> bytes:
    (folder / name).write_bytes(content)
    scrub(folder / name, folder / f"clean-{name}", force=True)
    return (folder / f"clean-{name}").read_bytes()


def test_every_planted_secret_is_in_the_source() -> None:
    assert [secret for secret in SECRETS if secret.encode() not in leaky()] == []


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_no_secret_is_left_in_any_byte_or_text(tmp_path: Path, name: str) -> None:
    packed = name.endswith(".gz")
    content = scrubbed(tmp_path, gzip.compress(leaky()) if packed else leaky(), name)
    text = gzip.decompress(content) if packed else content
    decoded = json.dumps(json.loads(text), ensure_ascii=False)
    assert [secret for secret in SECRETS if secret.encode() in text or secret in decoded] == []


def test_names_and_arguments_keep_what_is_not_private(tmp_path: Path) -> None:
    document = json.loads(scrubbed(tmp_path, leaky()))
    assert [event["name"] for event in document["traceEvents"]] == [
        "process_name",
        "aten::mm",
        "train.py(12): step",
        "torch/utils/data/dataloader.py(5): next",
        "torch/optim/sgd.py(7): step",
        "load [path]/x.bin from [removed]:8080",
        "[removed]",
    ]
    arguments = document["traceEvents"][1]["args"]
    assert arguments["user"] == arguments["env"] == "[removed]"
    assert arguments["note"] == "key [removed]"
    assert arguments["Call stack"] == "net.py(3): f;g.py(4): g"
    assert arguments["shapes"] == ["[2, 3]", "on [removed]"]
    assert arguments["escaped"] == 'at [path]/x.bin with "quotes"'
    assert arguments["Ev Idx"] == 7


def test_members_beside_the_events_keep_devices_ranks_and_versions(tmp_path: Path) -> None:
    document = json.loads(scrubbed(tmp_path, leaky()))
    for key in ("deviceProperties", "distributedInfo", "schemaVersion", "nccl_version"):
        assert document[key] == {"schemaVersion": 1, **HEADER}[key], key
    for key in ("host_name", "traceName", "environ", "argv"):
        assert document[key] == "[removed]", key
    assert document["INFO"] == ["[removed]"]


def test_numbers_stay_as_they_are_written(tmp_path: Path) -> None:
    text = (
        b'{"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"f","ts":1.50,"dur":0010,"x":1e3,"y":-0}]}'
    )
    assert scrubbed(tmp_path, text) == text


def test_the_result_and_its_manifest_count_what_went(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(leaky())
    result = scrub(tmp_path / "t.json", tmp_path / "out.json")
    removed = dict(result.removed)
    assert removed["private properties"] == 7  # host_name, traceName, environ, argv, INFO; user and env of an event
    assert removed["texts cleaned of paths and secrets"] == 9
    assert result.secrets >= 5
    assert result.verified_bytes == len((tmp_path / "out.json").read_bytes())
    manifest = (tmp_path / "out.json.scrubbed.json").read_text()
    assert json.loads(manifest)["removed"] == removed
    assert [secret for secret in SECRETS if secret in manifest] == []


def test_hosts_in_file_names_are_looked_for(tmp_path: Path) -> None:
    content = trace([complete("on gpu-node-17", 1, 2, category="user_annotation")])
    clean = scrubbed(tmp_path, content, "gpu-node-17_4711.1700000000000.pt.trace.json")
    assert json.loads(clean)["traceEvents"][0]["name"] == "on [removed]"


def test_a_user_named_like_a_kernel_renames_none(tmp_path: Path) -> None:
    events = [complete("reduce max", 1, 2, category="kernel"), complete("/home/max/x.bin", 3, 1)]
    names = [event["name"] for event in json.loads(scrubbed(tmp_path, trace(events)))["traceEvents"]]
    assert names == ["reduce max", "[path]/x.bin"]


def test_scrubbing_twice_changes_nothing_more(tmp_path: Path) -> None:
    once = scrubbed(tmp_path, leaky())
    assert scrubbed(tmp_path, once, "again.json") == once


@pytest.mark.parametrize(
    "content",
    [
        leaky()[:-200],
        gzip.compress(leaky())[:-30],
        leaky().replace(b'"ph"', b"secret words", 1),
        leaky() + b"and more",
        b'{"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"cpu_op"}',
    ],
)
def test_what_cannot_be_read_to_its_end_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(DamagedTraceError):
        scrub(tmp_path / "t.json", tmp_path / "out.json")
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_an_existing_output_or_manifest_is_kept(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(leaky())
    (tmp_path / "out.json.scrubbed.json").write_text("mine")
    with pytest.raises(OutputExistsError):
        scrub(tmp_path / "t.json", tmp_path / "out.json")
    assert (tmp_path / "out.json.scrubbed.json").read_text() == "mine"
    assert not (tmp_path / "out.json").exists()


def test_a_damaged_trace_still_tells_its_secrets(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(leaky()[:-40])
    texts = {secret.text for secret in secrets_in(tmp_path / "t.json")}
    assert {b"tok-3f9a8b7c6d5e", b"gpu-node-17", b"hunter2-zz", b"ada"} <= texts


def test_tensorflow_traces_lose_hosts_and_paths(tmp_path: Path) -> None:
    events = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "name": "$/home/ada/train.py:12 step"},
        {"ph": "X", "pid": 1, "tid": 2, "ts": 5, "dur": 2, "name": "MatMul", "args": {"source": "users/ada/m.py:3"}},
        {},
    ]
    content = json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events})
    clean = json.loads(scrubbed(tmp_path, content.encode(), "gpu-node-17.trace.json"))
    assert clean["displayTimeUnit"] == "ns"
    assert clean["metadata"] == {"highres-ticks": True}
    assert [event.get("name") for event in clean["traceEvents"]] == [
        "process_name",
        "$train.py:12 step",
        "MatMul",
        None,
    ]
    assert clean["traceEvents"][0]["args"]["name"] == "/host:CPU"
    assert clean["traceEvents"][2]["args"]["source"] == "m.py:3"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """Return a value without its texts."""
    if isinstance(value, dict):
        return [shape(inner) for inner in value.values()]
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return "text" if isinstance(value, str) else value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(VALUES, min_size=1, max_size=4), ascii_only=st.booleans(), spot=st.sampled_from(["x", '"\\', "é\n"])
)
def test_any_arguments_come_out_as_json_of_the_same_shape_without_the_secret(
    tmp_path: Path, values: list[Any], *, ascii_only: bool, spot: str
) -> None:
    planted = [[value, f"{spot}tok-3f9a8b7c6d5e{spot}"] for value in values]
    event = {"ph": "X", "cat": "cpu_op", "name": "f", "ts": 1, "dur": 1, "args": {"a": planted}}
    document = {"schemaVersion": 1, "traceEvents": [event], "API_TOKEN": "tok-3f9a8b7c6d5e"}
    (tmp_path / "t.json").write_text(json.dumps(document, ensure_ascii=ascii_only), encoding="utf-8")
    scrub(tmp_path / "t.json", tmp_path / "out.json", force=True)
    clean = json.loads((tmp_path / "out.json").read_bytes())
    if not any(isinstance(inner, dict) for inner in walk(planted)):  # a private key may take a whole object out
        assert shape(clean["traceEvents"]) == shape(document["traceEvents"])
    assert "tok-3f9a8b7c6d5e" not in json.dumps(clean, ensure_ascii=False)
    assert all(
        text[1] == ("[removed]" if spot == "x" else f"{spot}[removed]{spot}")
        for text in clean["traceEvents"][0]["args"]["a"]
    )


def walk(value: Any) -> list[Any]:
    """Return a value and all in it."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value, *(leaf for part in inner for leaf in walk(part))]


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_blocks_of_any_size_give_the_same_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    deep = {"ph": "X", "name": "deep", "args": {"x": [[[[[[[[[["tok"]]]]]]]]]]}}
    (tmp_path / "t.json").write_bytes(trace([deep, complete("f", 1, 2)], header=HEADER))
    monkeypatch.setattr(json_text, "BLOCK_BYTES", block)
    text = b"".join(segment.text for segment in json_text.segments(tmp_path / "t.json"))
    assert json.loads(text) == json.loads((tmp_path / "t.json").read_bytes())


def test_texts_go_under_keys_of_machines_places_persons_commands_and_output(tmp_path: Path) -> None:
    """Numbers stay there, and elsewhere the value is searched if it is distinctive."""
    keys = (
        *("node", "machine", "pod", "k8s_pod_name", "cluster", "container_id", "MASTER_ADDR", "ip", "mac", "host_ip"),
        *("url", "uri", "endpoint", "git_remote", "workdir", "script", "args_list", "owner", "author", "job_name"),
        *("stdout", "stderr", "output", "log", "prompt"),
    )
    secrets = {key: f"quagga-7f3a9c{number}" for number, key in enumerate(keys)}
    counts = {f"{key}_count": 3 for key in keys}
    events = [complete("f", 1, 2, category="cpu_op", args=secrets | counts)]
    header = {**secrets, "category": "of " + " ".join(secrets.values())}
    clean = json.loads(scrubbed(tmp_path, trace(events, header=header)))
    assert {key: clean[key] for key in keys} == dict.fromkeys(keys, "[removed]")
    assert clean["category"] == "of" + " [removed]" * len(keys)
    (written,) = [event for event in clean["traceEvents"] if event.get("name") == "f"]
    assert written["args"] == dict.fromkeys(keys, "[removed]") | counts
