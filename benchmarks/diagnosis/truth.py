"""The truth about a world: the time that is gained if each of its causes is taken away."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from benchmarks.diagnosis.knobs import Knob
from benchmarks.diagnosis.record import Record
from benchmarks.diagnosis.serving import serve
from benchmarks.diagnosis.training import train
from benchmarks.diagnosis.worlds import World

HIDDEN = 0.05
"""Two causes hide each other if the gain of both differs by this much from the sum of their gains."""


@dataclass(frozen=True, slots=True)
class Truth:
    """A world, its record, and the gains of its causes, as shares of the time with them.

    ``hiding`` are pairs of causes whose gains do not add up.
    """

    world: World
    record: Record
    gains: dict[Knob, float]
    hiding: tuple[frozenset[Knob], ...] = ()

    @property
    def best(self) -> float:
        """The greatest gain; 0 for a world without causes."""
        return max(self.gains.values(), default=0.0)


def run(world: World, *, keeps: bool = True) -> Record:
    """Return what happens in a world; without ``keeps`` only when it ends."""
    return serve(world, keeps=keeps) if world.serves else train(world, keeps=keeps)


def find_truth(world: World) -> Truth:
    """Run a world with and without each of its causes."""
    record = run(world)

    def gain(other: World) -> float:
        return 1 - run(other, keeps=False).end / record.end

    gains = {knob: gain(world.without(knob)) for knob in world.strengths}
    hiding = []
    for first, second in combinations(gains, 2):
        both = gain(world.without(first).without(second))
        if abs(both - gains[first] - gains[second]) > HIDDEN:
            hiding.append(frozenset({first, second}))
    return Truth(world, record, gains, tuple(hiding))
