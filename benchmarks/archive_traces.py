"""Make many different small traces of mixed formats: the stories of ``sample_traces``, each with its own seed.

python benchmarks/archive_traces.py FOLDER COUNT

A third are databases of Nsight Systems, a third captures of PyTorch, a third XPlane files of TensorFlow and JAX: 18 to
170 kB each. Only small changes of the durations vary, so every file is a valid trace with its own hash.
"""

from __future__ import annotations

import gzip
import random
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sample_traces"))

import kineto_program
import kineto_stories
import program
import stories
import xplane_program
import xplane_stories

PROGRAMS = (program, kineto_program, xplane_program)
NSYS = stories.STORIES
KINETO = tuple(story for story in kineto_stories.STORIES if len(story.train()) == 1)
XPLANE = tuple(story for story in xplane_stories.STORIES if story.name.startswith("gpu_"))


def make(folder: Path, count: int) -> None:
    """Write ``count`` traces into a folder, which may already have the first of them."""
    folder.mkdir(parents=True, exist_ok=True)
    have = sum(1 for _ in folder.iterdir())
    for number in range(have, count):
        _with_chance_of(number)
        _MAKERS[number % len(_MAKERS)](folder, number)


def _with_chance_of(number: int) -> None:
    """Let the programs draw their durations from other seeds from now on."""
    other = SimpleNamespace(Random=lambda seed: random.Random(f"{seed} {number}"))
    for module in PROGRAMS:
        module.random = other  # type: ignore[attr-defined]


def _nsys(folder: Path, number: int) -> None:
    story = NSYS[number // len(_MAKERS) % len(NSYS)]
    story.database().save(folder / f"{number:06}.sqlite")


def _kineto(folder: Path, number: int) -> None:
    story = KINETO[number // len(_MAKERS) % len(KINETO)]
    (one,) = story.train()
    packed = gzip.compress(one.trace.encoded(), compresslevel=6, mtime=0)
    (folder / f"{number:06}.pt.trace.json.gz").write_bytes(packed)


def _xplane(folder: Path, number: int) -> None:
    story = XPLANE[number // len(_MAKERS) % len(XPLANE)]
    (folder / f"{number:06}.xplane.pb").write_bytes(story.space().encoded())


_MAKERS = (_nsys, _kineto, _xplane)

if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
