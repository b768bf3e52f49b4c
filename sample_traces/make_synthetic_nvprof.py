"""Make the synthetic nvprof files, or check that the committed ones are what this program makes.

    python sample_traces/make_synthetic_nvprof.py            write synthetic/nvprof_* and their part of MANIFEST.toml
    python sample_traces/make_synthetic_nvprof.py --check    compare what they hold; exit code 1 where it differs

Nothing in them was recorded: they are programs of ``stories.py``, put into nvprof's forms by ``nvprof_files.py``. So
each has a twin among the exports of Nsight Systems with the same events, to the nanosecond.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from make_synthetic import contents
from nvprof_files import VERSION, NvprofRun
from stories import STORIES as PROGRAMS
from stories import Expected

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "synthetic"
MANIFEST = HERE / "MANIFEST.toml"
BEGIN, END = "# begin: written by make_synthetic_nvprof.py", "# end: written by make_synthetic_nvprof.py"

_PROGRAMS = {story.name: story for story in PROGRAMS}


@dataclass(frozen=True, slots=True)
class Sample:
    """One file.

    Args:
        file: Its name; the suffix says whether it is a database.
        program: Story of ``stories.py`` whose program runs.
        tells: One sentence, for the manifest.
        expected: What a report must say.
        tensorflow: Kernels have names of TensorFlow's, and not of PyTorch's.
        summary: Print the summary, and not the trace.
    """

    file: str
    program: str
    tells: str
    expected: Expected
    tensorflow: bool = False
    summary: bool = False

    @property
    def path(self) -> Path:
        """Where the file is kept."""
        return FOLDER / self.file

    @property
    def is_database(self) -> bool:
        """Whether nvprof wrote it with ``-o``."""
        return self.path.suffix == ".nvvp"

    def write(self, path: Path) -> None:
        """Write it to ``path``."""
        run = self._run()
        if self.is_database:
            run.save(path)
        else:
            path.write_text(run.printed_summary() if self.summary else run.printed_trace(), encoding="utf-8")

    def _run(self) -> NvprofRun:
        return NvprofRun(_PROGRAMS[self.program].database(), self.tells, _as_tensorflow if self.tensorflow else str)


def _as_tensorflow(kernel: str) -> str:
    return kernel.replace("at::native", "tensorflow::functor")


SAMPLES = (
    Sample(
        "nvprof_torch_input_bound.nvvp",
        "input_bound",
        "PyTorch with NVTX ranges: the device waits for a slow loader inside the range 'data loading'",
        Expected("highly-input-bound", ("TV101",), 30),
    ),
    Sample(
        "nvprof_tensorflow_pageable.nvvp",
        "pageable_copies_driver",
        "TensorFlow 1: input copied from pageable memory, exposed, through the driver API",
        Expected("highly-input-bound", ("TV101", "TV302"), 30),
        tensorflow=True,
    ),
    Sample(
        "nvprof_trace.csv",
        "synchronisation",
        "a printed trace of the GPU and of API calls: cudaDeviceSynchronize after every second kernel",
        Expected("not-input-bound", ("TV203",), 29),  # inferred: from one repetition to the next
    ),
    Sample(
        "nvprof_summary.csv",
        "allocation_churn",
        "a printed summary: totals without events, which support no verdict",
        Expected("cannot-judge", (), 0),
        summary=True,
    ),
)


def main() -> int:
    """Run the command line; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed files and write nothing")
    if parser.parse_args().check:
        problems = check()
        print("\n".join(problems) or f"{len(SAMPLES)} files hold what the generator makes")
        return 1 if problems else 0
    FOLDER.mkdir(exist_ok=True)
    for sample in SAMPLES:
        sample.write(sample.path)
        print(f"{sample.path.relative_to(HERE)}  {sample.path.stat().st_size:,} bytes")
    write_manifest()
    return 0


def check() -> list[str]:
    """What differs between the committed files and a fresh run, one sentence each.

    Databases are compared row by row, since their bytes may depend on the version of SQLite.
    """
    problems = []
    listed = {entry["file"]: entry for entry in tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["trace"]}
    for sample in SAMPLES:
        name = str(sample.path.relative_to(HERE))
        with tempfile.TemporaryDirectory() as folder:
            fresh = Path(folder, sample.file)
            sample.write(fresh)
            if not sample.path.exists() or not _same(sample.path, fresh):
                problems.append(f"{name} does not hold what the generator makes: run {Path(__file__).name}")
        if sample.path.exists() and listed.get(name, {}).get("sha256") != _sha256(sample.path):
            problems.append(f"{name} is not the file that MANIFEST.toml lists")
    return problems


def _same(path: Path, fresh: Path) -> bool:
    if path.suffix == ".nvvp":
        return contents(path) == contents(fresh)
    return path.read_bytes() == fresh.read_bytes()


def write_manifest() -> None:
    """Replace this program's part of the manifest, and leave the rest as it is."""
    text = MANIFEST.read_text(encoding="utf-8")
    if BEGIN not in text:
        text = f"{text}\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    entries = "\n".join(entry_of(sample) for sample in SAMPLES)
    MANIFEST.write_text(f"{before}{BEGIN}\n\n{entries}\n{END}{after}", encoding="utf-8")


def entry_of(sample: Sample) -> str:
    """The manifest's entry of one file."""
    facts = {
        "file": str(sample.path.relative_to(HERE)),
        "synthetic": True,
        "story": sample.tells,
        "made_by": "python sample_traces/make_synthetic_nvprof.py",
        **({"schema": str(VERSION)} if sample.is_database else {}),
        "twin": f"synthetic/{sample.program}.sqlite",
        "sha256": _sha256(sample.path),
        "bytes": sample.path.stat().st_size,
        "verdict": sample.expected.verdict,
        "findings": list(sample.expected.findings),
        "steps": sample.expected.steps,
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(["[[trace]]", *lines, ""])


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
