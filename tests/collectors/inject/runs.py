"""Running a program under the hooks, without the command line around it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceviz.collectors.base import Harvest, Plan, Window
from traceviz.collectors.frameworks.injection import write_injection
from traceviz.collectors.registry import COLLECTORS
from traceviz.collectors.run.plan import added_environment

BY_NAME = {collector.name: collector for collector in COLLECTORS}

TEN_STEPS = Window(5, 10)


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    stdout: str
    stderr: str
    harvests: Mapping[str, Harvest]

    @property
    def problems(self) -> list[str]:
        return [problem.code for harvest in self.harvests.values() for problem in harvest.problems]


def run_under(
    folder: Path,
    collectors: Sequence[str],
    command: Sequence[str],
    window: Window = TEN_STEPS,
    wrapper: Sequence[str] = (),
    **options: Any,
) -> Ran:
    """Run ``command`` with the environment that these collectors ask for, and harvest."""
    plan = Plan(folder, tuple(command), tuple(collectors), window, **options)
    for name in collectors:
        plan.raw(name).mkdir(parents=True)
    write_injection(plan)
    recording = [BY_NAME[name] for name in collectors]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRACEVIZ_INJECT")}
    environment = {**inherited, **added_environment(plan, recording, inherited)}
    done = subprocess.run(
        [*wrapper, *command], env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    return Ran(
        done.returncode, done.stdout, done.stderr, {collector.name: collector.harvest(plan) for collector in recording}
    )
