"""Run folders as ``traceviz collect`` leaves them, from sample traces and from literals."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.analyses.builders import tables
from traceviz.parsers.run.layout import KIND
from traceviz.parsers.run.manifest import RunManifest
from traceviz.parsers.run.sources import Source
from traceviz.trace.tables import TraceTables, save

SECOND = 10**9


def manifest(**changed: Any) -> dict[str, Any]:
    """Return a manifest of a run that ended well; ``None`` leaves a key out."""
    stated = {
        "kind": KIND,
        "version": 1,
        "name": "cnn",
        "tags": {"batch": "64"},
        "command": "python, 2 arguments",
        "status": "finished",
        "exit": {"code": 0, "signal": None},
        "pid": 12,
        "collectors": [],
        "machine": {"cores": 8, "sockets": 1, "gpus": [{"name": "H200"}], "container": None},
        "versions": {"traceviz": "0.1"},
        "settings": {"OMP_NUM_THREADS": "4"},
        **changed,
    }
    return {key: value for key, value in stated.items() if value is not None}


def no_manifest() -> RunManifest:
    """Return a manifest without any facts."""
    return RunManifest()


def run_folder(
    folder: Path, raw: Mapping[str, Path | TraceTables | Sequence[Path]], stated: Mapping[str, Any] | None = None
) -> Path:
    """Return a run folder whose ``raw/NAME/...`` holds copies of files, or tables as a traceviz folder."""
    for name, content in raw.items():
        place = folder / "raw" / name
        place.mkdir(parents=True)
        if isinstance(content, TraceTables):
            save(content, place / "samples")
            continue
        for path in [content] if isinstance(content, Path) else content:
            shutil.copy(path, place / path.name)
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest(**(stated or {}))))
    return folder


def literal(collector: str, t0: int | None = 0, *, name: str = "", pid: int | None = None, **given: Any) -> Source:
    """Return a source from literals (see :func:`tests.analyses.builders.tables`) whose clock starts at ``t0``."""
    run = {"t0_unix_ns": t0, "producer": collector, "reader": collector, "format": collector, **given.pop("run", {})}
    built = tables(run=run, **given)
    return Source(collector, name or f"raw/{collector}", {table: built.arrow(table) for table in built}, pid)


def resources(t0: int, seconds: int, pid: int = 12, hz: int = 2) -> TraceTables:
    """Return samples of a program for some seconds, as the resource sampler takes them."""
    times = [number * SECOND // hz for number in range(seconds * hz)]
    samples = [
        (time, metric, value, {"process_id": process, "device_id": None, "unit": unit})
        for time in times
        for metric, value, process, unit in (("cpu", 130.0, 0, "%"), ("cpu.machine", 55.0, None, "%"))
    ]
    facts = {"t0_unix_ns": t0, "format": "resources", "producer": "traceviz sampler", "reader": "resources"}
    return tables(run=facts, samples=samples, processes=[(0, "python3", {"pid": pid})], threads=[])
