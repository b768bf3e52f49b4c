"""Results of xprof for captures, as JSON: runs in the oracle's own Python, never in the one that tests traceviz.

    python xprof_oracle.py grouped FILE             every event with the group and step name that xprof gives it
    python xprof_oracle.py input_pipeline FILE...   steps with their classes, host operations, verdict
    python xprof_oracle.py overview FILE...         averages, advice, the environment of the run
    python xprof_oracle.py kernel_stats FILE...     kernels with their totals
    python xprof_oracle.py framework_ops FILE...    framework operations with and without idle time
    python xprof_oracle.py memory FILE              allocations per allocator

Several files are the hosts of one run. A file may be gzipped. xprof leaves caches next to its input, and trusts them
the next time: so it gets a copy.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from xprof.convert import _pywrap_profiler_plugin as plugin
from xprof.convert import raw_to_tool_data

TOOLS = {
    "input_pipeline": "input_pipeline_analyzer",
    "overview": "overview_page",
    "kernel_stats": "kernel_stats",
    "framework_ops": "framework_op_stats",
    "memory": "memory_profile",
}
"""Names of xprof's own tools."""

FRESH = {"use_saved_result": False}


def main() -> None:
    """Run the command line; JSON goes to standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["grouped", *TOOLS])
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies = [copy_into(Path(folder), file) for file in options.files]
        answer = grouped(copies) if options.command == "grouped" else tool(options.command, copies)
    json.dump(answer, sys.stdout)


def copy_into(folder: Path, file: Path) -> str:
    """Return the path of an unpacked copy of ``file``, under a name that xprof takes for a capture."""
    name = file.name.removesuffix(".gz")
    copy = folder / (name if name.endswith(".xplane.pb") else f"{name}.xplane.pb")
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target)
    return str(copy)


def tool(command: str, paths: list[str]) -> Any:
    """Return the answer of an xprof tool: gviz tables as ``{"rows": [{column: value}], "properties": {...}}``."""
    data, _ = raw_to_tool_data.xspace_to_tool_data(paths, TOOLS[command], dict(FRESH))
    answer = json.loads(data)
    if isinstance(answer, list):
        return [plain_table(table) for table in answer]
    return plain_table(answer) if "cols" in answer else answer


def plain_table(table: dict[str, Any]) -> dict[str, Any]:
    """Return a gviz table without its wrapping: rows by column id."""
    names = [column["id"] for column in table.get("cols", [])]
    values = [[cell.get("v") for cell in row["c"]] for row in table.get("rows", [])]
    return {"rows": [dict(zip(names, row, strict=True)) for row in values], "properties": table.get("p", {})}


def grouped(paths: list[str]) -> dict[str, Any]:
    """Return the XSpace after xprof's grouping, as columns per line; lines that xprof derives are included.

    ``group_id`` and ``step_name`` are null for events that have none. Names are those of the event's metadata. Times
    are picoseconds, offsets relative to the line's ``timestamp_ns``.
    """
    data, succeeded = plugin.xspace_to_tools_data(paths, "_xplane.pb", dict(FRESH))
    if not succeeded:
        sys.exit(f"xprof cannot group {paths}: {data!r}")
    space = messages().XSpace.FromString(data)
    return {"planes": [{"name": plane.name, "id": plane.id, "lines": lines_of(plane)} for plane in space.planes]}


def lines_of(plane: Any) -> list[dict[str, Any]]:
    """Return the lines of a plane with one list per column of their events."""
    keys = {key: metadata.name for key, metadata in plane.stat_metadata.items()}
    group_keys = {key for key, name in keys.items() if name == "group_id"}
    step_keys = {key for key, name in keys.items() if name == "step_name"}
    names = {key: metadata.name for key, metadata in plane.event_metadata.items()}
    return [
        {
            "id": line.id,
            "name": line.display_name or line.name,
            "timestamp_ns": line.timestamp_ns,
            "event": [names.get(event.metadata_id, "") for event in line.events],
            "offset_ps": [event.offset_ps for event in line.events],
            "duration_ps": [event.duration_ps for event in line.events],
            "group_id": [first_value(event, group_keys, keys) for event in line.events],
            "step_name": [first_value(event, step_keys, keys) for event in line.events],
        }
        for line in plane.lines
    ]


def first_value(event: Any, wanted: set[int], texts: dict[int, str]) -> int | str | float | None:
    """Return the value of the first stat of ``event`` whose key is ``wanted``."""
    for stat in event.stats:
        if stat.metadata_id in wanted:
            kind = stat.WhichOneof("value")
            value = getattr(stat, kind)
            return texts[value] if kind == "ref_value" else value
    return None


def messages() -> ModuleType:
    """Return TensorFlow's generated classes, loaded without TensorFlow itself, which takes seconds to import."""
    package = importlib.util.find_spec("tensorflow")
    if package is None or not package.submodule_search_locations:
        sys.exit("TensorFlow is not installed beside xprof: pip install 'traceviz-toolkit[tensorflow]'")
    file = Path(package.submodule_search_locations[0], "tsl", "profiler", "protobuf", "xplane_pb2.py")
    spec = importlib.util.spec_from_file_location("xplane_pb2", file)
    if spec is None or spec.loader is None:
        sys.exit(f"{file} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
