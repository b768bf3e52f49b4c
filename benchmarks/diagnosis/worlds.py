"""Worlds: the size of a program, the machine under it, and the strength of its causes, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from benchmarks.diagnosis.knobs import KNOBS, Knob

HEALTHY_WORLDS = 0.15
"""Share of worlds without a cause."""
MANY_CAUSES = (0.75, 0.95)
"""Of the others: below the first there is one cause, below the second there are two, else three."""
SERVING_WORLDS = 0.1
MOST_KERNELS = 12_000
"""Most kernels of a world, about: more layers or ranks mean fewer steps."""
SHORTEST_STEP = 12_000_000
"""Least device time of a healthy step in nanoseconds."""
APART = frozenset({frozenset({Knob.SLOW_LOADER, Knob.SLOW_WORKERS})})
"""Causes that a program cannot have at once."""


@dataclass(frozen=True, slots=True)
class World:
    """A program on a machine.

    Args:
        seed: Seed of all costs.
        steps: Steps of training, or requests of a serving engine.
        ranks: Processes, with one device each.
        layers: Layers of the model.
        operators: Operators of a layer.
        kernel_ns: Mean duration of a kernel of the forward pass.
        operator_ns: Mean time of the host for an operator.
        workers: Loader processes; 0 loads in the program itself.
        cores: Cores of each rank.
        spread: Spread of all costs; see :class:`~benchmarks.diagnosis.costs.Costs`.
        serves: True for a serving engine.
        strengths: Time that each cause adds to a step, as a share of the device time of a healthy step.
    """

    seed: int
    steps: int = 8
    ranks: int = 1
    layers: int = 6
    operators: int = 4
    kernel_ns: int = 200_000
    operator_ns: int = 14_000
    workers: int = 2
    cores: int = 8
    spread: float = 0.12
    serves: bool = False
    strengths: dict[Knob, float] = field(default_factory=dict)

    @property
    def device_ns(self) -> int:
        """Mean device time of a healthy step: the backward pass takes twice as long as the forward pass."""
        return 3 * self.layers * self.operators * self.kernel_ns

    def added_ns(self, knob: Knob) -> float:
        """Return the time that a cause adds to a step; 0 if the world does not have it."""
        return self.strengths.get(knob, 0.0) * self.device_ns

    def without(self, knob: Knob) -> World:
        """Return the same world without a cause."""
        return replace(self, strengths={other: value for other, value in self.strengths.items() if other is not knob})


def draw_world(seed: int) -> World:
    """Return the world of a seed."""
    random = Random(f"{seed}/world")
    serves = random.random() < SERVING_WORLDS
    ranks = 1 if serves else random.choice((1, 1, 1, 2, 2, 4, 8))
    world = World(
        seed,
        ranks=ranks,
        layers=random.randint(3, 12),
        operators=random.randint(3, 6),
        kernel_ns=random.randint(100, 500) * 1_000,
        operator_ns=random.randint(8, 18) * 1_000,
        workers=random.choice((0, 2, 4)),
        cores=random.choice((4, 8, 16)),
        spread=random.uniform(0.05, 0.25),
        serves=serves,
    )
    # A step that is short next to the host's own work would not be healthy.
    shortest = SHORTEST_STEP // (3 * world.layers * world.operators)
    world = replace(world, kernel_ns=max(world.kernel_ns, shortest))
    strengths = _draw_strengths(random, world)
    if Knob.RESULT_READS in strengths:  # reads cost little next to long kernels
        world = replace(world, kernel_ns=random.randint(15, 50) * 1_000)
    workers = world.workers
    if Knob.SLOW_LOADER in strengths:
        workers = 0
    elif Knob.SLOW_WORKERS in strengths:
        workers = random.choice((1, 2, 4))
    cores = 2 if Knob.OTHER_PROGRAMS in strengths else world.cores
    a_step = world.ranks * world.layers * world.operators * 3
    if Knob.SMALL_KERNELS in strengths:
        a_step += round(world.ranks * strengths[Knob.SMALL_KERNELS] * world.device_ns / world.operator_ns)
    most = max(4, min(200, MOST_KERNELS // a_step))
    steps = round(3 * (most / 3) ** random.random())
    if strengths.keys() & {Knob.CHECKPOINT, Knob.EVALUATION, Knob.COMPILATION}:
        steps = max(steps, min(most, 8))
    if strengths.keys() & {Knob.FIRST_USE, Knob.START_UP}:
        steps = min(steps, 10)
    return replace(world, steps=max(3, steps), workers=workers, cores=cores, strengths=strengths)


def _draw_strengths(random: Random, world: World) -> dict[Knob, float]:
    if random.random() < HEALTHY_WORLDS:
        return {}
    draw = random.random()
    wanted = 1 if draw < MANY_CAUSES[0] else 2 if draw < MANY_CAUSES[1] else 3
    possible = [facts for facts in KNOBS.values() if facts.serves == world.serves and facts.ranks <= world.ranks]
    if world.ranks > 1:  # else causes of several ranks would be rare
        possible += [facts for facts in possible if facts.ranks > 1] * 3
    chosen: dict[Knob, float] = {}
    for _ in range(wanted):
        facts = random.choice(possible)
        if any(frozenset({facts.knob, other}) in APART for other in chosen):
            continue
        chosen[facts.knob] = random.uniform(facts.least, facts.most)
    return chosen
