"""The report on a scrubbed trace equals the report on the trace."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.support.reports import report_of
from traceviz.api import ReadOptions, convert, report_on, to_text
from traceviz.core.errors import TracevizError
from traceviz.scrub import scrub, scrub_folder, secrets_in

SAMPLES = REPOSITORY / "sample_traces"
NAMES = (
    "kineto/stacks_memory.pt.trace.json.gz",
    "kineto/two_ranks",
    "nsys/nvtx_loop.sqlite",
    "synthetic/nvprof_tensorflow_pageable.nvvp",
    "xplane/jax_annotated.xplane.pb.gz",
    "xplane/keras_tensorboard",
)


def report_json(path: Path) -> Any:
    """Return the report on a trace as JSON has it."""
    return json.loads(to_text(report_on(path), "json"))


@pytest.mark.parametrize("name", NAMES)
def test_samples_keep_their_report(tmp_path: Path, name: str) -> None:
    clean = tmp_path / Path(name).name
    scrub(SAMPLES / name, clean)
    assert report_json(clean) == json.loads(to_text(report_of(SAMPLES / name), "json"))


@pytest.mark.parametrize("name", ["synthetic/torch_launch_bound.pt.trace.json.gz", "synthetic/input_bound.sqlite"])
def test_tables_scrubbed_with_the_secrets_of_their_source_keep_its_report(tmp_path: Path, name: str) -> None:
    source, clean = SAMPLES / name, tmp_path / Path(name).name
    convert(source, tmp_path / "tables", read=ReadOptions(keep_private=True))
    clean.mkdir()
    scrub_folder(tmp_path / "tables", clean, secrets_in(source))
    assert report_json(clean) == json.loads(to_text(report_of(source), "json"))


def _public_traces() -> list[Path]:
    folder = Path(os.environ.get("TRACEVIZ_TRACES", "/nonexistent"))
    return sorted([*folder.glob("kineto/*.json*"), *folder.glob("nvprof/*.sql"), *folder.glob("nvprof/*out.nvvp")])


@pytest.mark.slow
@pytest.mark.parametrize("source", _public_traces() or [None], ids=lambda path: path.name if path else "none")
def test_public_traces_keep_their_verdict_and_their_numbers(source: Path | None, tmp_path: Path) -> None:
    if source is None:
        pytest.skip("TRACEVIZ_TRACES is not set: no public traces")
    clean = tmp_path / source.name
    scrub(source, clean)
    try:
        expected = report_json(source)
    except TracevizError as error:
        with pytest.raises(type(error)):
            report_json(clean)
        return
    scrubbed = report_json(clean)
    assert scrubbed["verdict"] == expected["verdict"]
    assert numbers(scrubbed) == numbers(expected)


def numbers(value: Any) -> list[Any]:
    """Return all numbers in a document, in order."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [number for part in inner for number in numbers(part)]
    return [value] if isinstance(value, int | float) else []
