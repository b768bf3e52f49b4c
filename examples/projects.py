"""Four small projects, each before and after it was made faster: the table of changes, and the program that runs them.

python examples/projects.py cnn before
python examples/projects.py cnn after --seed 2

Further switches are those of the project's program.
"""

from __future__ import annotations

import runpy
import shlex
import sys
from pathlib import Path

PROJECTS = {
    "cnn": (
        "keras_images.py --images 2048 --epochs 8",
        {"before": "", "after": "--cache --parallel-map 2 --prefetch 2"},
    ),
    "lstm": (
        "series_forecast.py --epochs 8",
        {
            "before": "",
            "after": "--windows array --batch-size 128",
            "tuned": "--windows array --batch-size 128 --learning-rate 0.004",
        },
    ),
    "dense": (
        "dense_grid_search.py",
        {"before": "", "after": "--batch-size 64 --early-stopping 1 --clear-session"},
    ),
    "text": ("text_classifier.py --epochs 12", {"before": "", "after": "--processes 2 --keep"}),
}
"""Map from project to program, and the switches of each of its stages."""


def main() -> None:
    """Run a project's program in this process."""
    names = [f"{project} {stage}" for project, (_, stages) in PROJECTS.items() for stage in stages]
    if " ".join(sys.argv[1:3]) not in names:
        sys.exit(f"usage: {sys.argv[0]} PROJECT STAGE, one of: {', '.join(names)}")
    program, stages = PROJECTS[sys.argv[1]]
    sys.argv = [*shlex.split(f"{program} {stages[sys.argv[2]]}"), *sys.argv[3:]]
    runpy.run_path(str(Path(__file__).parent / sys.argv[0]), run_name="__main__")


if __name__ == "__main__":
    main()
