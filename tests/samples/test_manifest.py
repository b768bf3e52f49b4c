"""The manifest lists every shipped sample correctly; and no sample reveals the machine that made it."""

from __future__ import annotations

import gzip
import hashlib
import re
import tomllib
from typing import Any

import pytest

from tests.conftest import REPOSITORY

SAMPLES = REPOSITORY / "sample_traces"
ENTRIES: list[dict[str, Any]] = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text(encoding="utf-8"))["trace"]
SUFFIXES = {".sqlite", ".nsys-rep", ".qdstrm", ".pb", ".gz", ".nvvp", ".csv"}

PRIVATE = re.compile(
    rb"/root/|/home/|/work/|/Users/|(?:TOKEN|SECRET|PASSWORD|API_KEY|CREDENTIAL)[A-Z_]*=|AWS_|SSH_|OLDPWD=/[a-z]|USER=|LOGNAME="
)

entries = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])


def test_every_sample_is_listed_once() -> None:
    shipped = sorted(str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*") if path.suffix in SUFFIXES)
    assert sorted(entry["file"] for entry in ENTRIES) == shipped
    assert len(shipped) >= 22


@entries
def test_checksum_and_size_are_those_of_the_file(entry: dict[str, Any]) -> None:
    raw = (SAMPLES / entry["file"]).read_bytes()
    assert (entry["sha256"], entry["bytes"]) == (hashlib.sha256(raw).hexdigest(), len(raw))
    assert len(raw) < 300_000


@entries
def test_raw_bytes_hold_no_private_path_and_no_foreign_variable(entry: dict[str, Any]) -> None:
    raw = (SAMPLES / entry["file"]).read_bytes()
    assert PRIVATE.findall(raw) == []
    if entry["file"].endswith(".gz"):
        assert PRIVATE.findall(gzip.decompress(raw)) == []


def test_the_pattern_of_private_text_would_find_some() -> None:
    assert len(PRIVATE.findall(b"PWD=/home/ann\0GITHUB_TOKEN=x\0AWS_REGION=eu")) == 3
