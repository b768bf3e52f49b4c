"""Output of traceviz itself: folders of tables, runs, saved reports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

from tests.fuzz.cases import Depth, Format
from tests.fuzz.formats.kineto import contents as kineto_files
from tests.fuzz.formats.xplane import contents as xplane_files
from tests.fuzz.mutations import folders, json_text
from tests.fuzz.mutations.octets import SPOIL, in_file
from tests.fuzz.oracle import check_command, check_comparison, check_report, examine
from tests.parsers.run.folders import resources, run_folder
from tests.parsers.run.stack_files import WHOLE, process, training
from tests.parsers.run.stack_files import write as write_stacks
from traceviz.api import convert, report_on, to_text
from traceviz.compare.sides.load_sides import load_report
from traceviz.core.errors import TracevizError
from traceviz.trace.tables import save


def _traces(folder: Path) -> dict[str, Path]:
    """Return files to make folders and reports of."""
    made = {}
    for name, content in kineto_files().items():
        made[f"kineto-{name}"] = folder / f"{name}.pt.trace.json"
        made[f"kineto-{name}"].write_bytes(content)
    for name, content in xplane_files().items():
        made[f"xplane-{name}"] = folder / f"{name}.xplane.pb"
        made[f"xplane-{name}"].write_bytes(content)
    return made


def _folders(folder: Path) -> None:
    work = folder / "work"
    work.mkdir()
    traces = _traces(work)
    convert(traces["kineto-rank"], folder / "rank")
    convert(traces["xplane-training"], folder / "training")
    save(resources(0, 2), folder / "resources")
    convert(write_stacks(work / "stacks.jsonl", training()), folder / "stacks")
    shutil.rmtree(work)


def _runs(folder: Path) -> None:
    work = folder / "work"
    work.mkdir()
    traces = _traces(work)
    resource = resources(1_700_000_000_000_000_000, 3)
    both = run_folder(folder / "both", {"torch": traces["kineto-rank"], "resources": resource})
    write_stacks(both / "raw" / "stacks" / "12" / "stacks.jsonl", training())
    run_folder(folder / "samples", {"resources": resource}, {"tags": {"a": "b"}})
    run_folder(
        folder / "tensorflow", {"tensorflow": traces["xplane-training"]}, {"status": "failed", "exit": {"code": 1}}
    )
    shutil.rmtree(work)


def _stacks(folder: Path) -> None:
    write_stacks(folder / "training.jsonl", training())
    write_stacks(folder / "worker.jsonl", [process(40, role="worker"), *WHOLE[1:]])


def _change_line(random: Random, path: Path) -> None:
    """Change, lose, repeat, move or cut one line."""
    lines = path.read_bytes().splitlines(keepends=True) or [b"\n"]
    at, to = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(8):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines.insert(to, lines.pop(at))
        case 3:
            lines[at] = lines[at][: random.randrange(len(lines[at]))]
        case _:
            lines[at] = json_text.change(random, lines[at])
    path.write_bytes(b"".join(lines))


def _reports(folder: Path) -> None:
    work = folder / "work"
    work.mkdir()
    traces = _traces(work)
    for name in ("kineto-rank", "kineto-training", "xplane-training"):
        (folder / f"{name}.json").write_text(to_text(report_on(traces[name]), "json"))
    stated = write_stacks(work / "stated.jsonl", training())  # figures of quality
    (folder / "stated.json").write_text(to_text(report_on(stated), "json"))
    shutil.rmtree(work)
    document = json.loads((folder / "kineto-training.json").read_text())
    (folder / "small.json").write_text(json.dumps({**document, "sections": document["sections"][:3]}))


def _examine_report(path: Path, depth: Depth) -> str:
    """Show a saved report, and compare it with another."""
    try:
        report = load_report(path)
        check_report(report, ours=False)  # its contents may be wrong, but must be harmless
    except TracevizError as error:
        if depth.whole or depth.reports:
            check_command(["compare", str(path), str(path)])
        return type(error).__name__
    shape = hash(tuple((section.slug, len(section.blocks)) for section in report.sections))
    if not (depth.is_new(shape) or depth.reports or depth.whole):
        return "tables"
    outcome = check_comparison(path, path)
    if depth.whole:
        check_command(["compare", str(path), str(path)])
        check_command(["report", str(path)])
        check_command(["doctor", str(path)])
        check_command(["scrub", str(path), "-o", str(path.with_name("clean.json"))])
    return outcome


_FOLDER_STEPS = {folders.CELLS: 5, folders.JSON: 2, folders.FOOTER: 1, folders.BYTES: 1, folders.rearrange: 1}
TRACE_FOLDER = Format("traceviz-folder", _folders, _FOLDER_STEPS, examine)
RUN_FOLDER = Format("run-folder", _runs, {**_FOLDER_STEPS, folders.JSON: 5}, examine)
STACKS = Format("stacks", _stacks, {_change_line: 8, SPOIL: 1}, examine)
SAVED_REPORT = Format("saved-report", _reports, {in_file(json_text.change): 8, SPOIL: 1}, _examine_report, reports=0.1)
