"""Reader of ``.qdstrm``, the raw stream that nsys leaves if it does not find its importer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from traceviz.core import nsys_program
from traceviz.core.errors import MissingToolError
from traceviz.core.process.temporary import temporary_folder
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys import tool as nsys_tool
from traceviz.parsers.nsys.report import exported, read_export

STAGE = "nsys import"


def read_stream(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a stream: import it into a report in a temporary folder, then export the report."""
    importer, nsys = nsys_program.find_importer(), nsys_program.find_nsys()
    if importer is None or nsys is None:
        raise _missing(path, "nsys" if nsys is None else "QdstrmImporter, a part of the nsys package,")
    with temporary_folder() as folder:
        report = folder / "imported.nsys-rep"
        command = [str(importer), "-i", str(path.absolute()), "-o", str(report)]
        outcome = nsys_program.run_quietly(command, folder, STAGE, options.progress)
        if outcome.status != 0 or not report.is_file():
            raise nsys_tool.failed(path, outcome)
        raw = exported(nsys, report, folder, options)
        yield from read_export(raw, nsys, path, options, "nsys-qdstrm, QdstrmImporter")


def _missing(path: Path, tool: str) -> MissingToolError:
    version = nsys_tool.recorded_version(path)
    return MissingToolError(
        f"{path.name} is a raw stream of Nsight Systems{f' {version}' if version else ''}.",
        f"Reading it takes {tool} which is not installed here.",
        f"Where it is: QdstrmImporter -i {path.name} (in the host-linux-x64 folder of the nsys package), then "
        f"nsys export --type sqlite {path.with_suffix('.nsys-rep').name}.",
    )
