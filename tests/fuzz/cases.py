"""Cases: a small input of some format, changed by a few steps, all determined by the case's number.

``Case("kineto", 17)`` is the same input on every machine and every day. The first numbers of a format are its unchanged
samples, which must be readable. Every step draws from a generator of its own. So a step can be left out and the others
stay the same: a case is reduced by leaving out steps that the fault does not need.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

Step = Callable[[Random, Path], None]
"""Changes a file or folder in its place."""
Examine = Callable[[Path, "Depth"], str]
"""Does with an input what a user would; gives one word for what came of it (see :mod:`tests.fuzz.oracle`)."""

_STEPS = (1, 1, 1, 1, 2, 2, 3, 5, 12)
"""Numbers of steps from which a case draws one."""
_NEW_SHARE = 0.3


@dataclass(frozen=True)
class Format:
    """A format whose inputs are changed.

    Args:
        name: Its name on the command line.
        samples: Writes small samples into an empty folder.
        steps: What may be done to one, and how often in relation to the others.
        examine: What is done with a changed input.
        reports: Share of the cases that go all the way; what looks new always does.
    """

    name: str
    samples: Callable[[Path], None]
    steps: Mapping[Step, int]
    examine: Examine
    reports: float = 0.05


@dataclass(frozen=True)
class Depth:
    """Depth of the processing of an input.

    Args:
        whole: Report, comparison, copy without secrets, and the command line, for any input.
        reports: True if a report is made of it in any case.
        seen: Shapes of earlier inputs; a report is made of some of those that look new.
        random: Chooses among actions that are done to a share of the inputs.
    """

    whole: bool = True
    reports: bool = True
    seen: set[int] = field(default_factory=set)
    random: Random = field(default_factory=Random)

    def is_new(self, looks: int) -> bool:
        """Return whether it looks new and is chosen; if it is not, it may be chosen the next time."""
        if looks in self.seen or self.random.random() > _NEW_SHARE:
            return False
        self.seen.add(looks)
        return True


@dataclass(frozen=True)
class Case:
    """One input: the format, its number, and the steps that are left out."""

    format: Format
    number: int
    without: frozenset[int] = frozenset()

    @property
    def command(self) -> str:
        """Command that makes this input again."""
        left_out = "".join(f" --without {step}" for step in sorted(self.without))
        return f"python -m tests.fuzz --format {self.format.name} --case {self.number}{left_out}"

    def random(self, part: object) -> Random:
        """Return the generator of one part of the case."""
        return Random(f"{self.format.name}/{self.number}/{part}")

    def steps(self, samples: Sequence[Path]) -> list[Step]:
        """Return the steps that change the sample; none for the first numbers."""
        if self.number < len(samples):
            return []
        random = self.random("steps")
        return random.choices(list(self.format.steps), list(self.format.steps.values()), k=random.choice(_STEPS))

    def make(self, samples: Sequence[Path], folder: Path) -> Path:
        """Write the input into ``folder``.

        Args:
            samples: Those of the format, in order.
            folder: An empty folder.
        """
        sample = samples[self.number] if self.number < len(samples) else self.random("sample").choice(samples)
        made = folder / sample.name
        if sample.is_dir():
            shutil.copytree(sample, made)
        else:
            shutil.copyfile(sample, made)
        for place, step in enumerate(self.steps(samples)):
            if place not in self.without:
                step(self.random(place), made)
        return made

    def depth(self, seen: set[int]) -> Depth:
        """Return the depth of the processing of this input in a long run."""
        random = self.random("depth")
        return Depth(
            whole=random.random() < self.format.reports / 10,
            reports=random.random() < self.format.reports,
            seen=seen,
            random=random,
        )
