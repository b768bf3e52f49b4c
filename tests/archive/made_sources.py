"""Sources for archives: a few traces of several formats, and files with trace names that are no traces."""

import shutil
from pathlib import Path

LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
INPUT_BOUND, LAUNCH_BOUND, SUMMARY = "input_bound.sqlite", "launch_bound.sqlite", "nvprof_summary.csv"
RANKS = ("rank0.pt.trace.json.gz", "rank1.pt.trace.json.gz")
READABLE = {INPUT_BOUND, LAUNCH_BOUND, SUMMARY, *RANKS}
POINTER, GARBAGE = "pointer.sqlite", "garbage.pt.trace.json"
UNREADABLE = {POINTER, GARBAGE}


def make_sources(folder: Path, samples: Path) -> Path:
    folder.mkdir()
    for name in (INPUT_BOUND, LAUNCH_BOUND, SUMMARY):
        shutil.copy(samples / "synthetic" / name, folder / name)
    shutil.copytree(samples / "kineto" / "two_ranks", folder / "two_ranks")
    (folder / POINTER).write_bytes(LFS_POINTER)
    (folder / GARBAGE).write_bytes(b'{"schemaVersion": 1, "traceEvents": [ {"ph": "X", ')
    return folder


def files_of(archive: Path) -> dict[str, bytes]:
    """Return every file of an archive by its path, except the catalogue and rows, which contain times."""
    return {
        path.relative_to(archive).as_posix(): path.read_bytes()
        for path in sorted(archive.rglob("*"))
        if path.is_file() and path.suffix == ".parquet" and path.name != "rows.parquet" and "traces" in path.parts
    }
