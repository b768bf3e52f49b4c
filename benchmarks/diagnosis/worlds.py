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
PIPELINES, TENSOR_PARALLEL, ACCUMULATION, GRAPHS, PREFETCHES, HELPERS = 0.25, 0.2, 0.2, 0.15, 0.15, 0.2
"""Shares of training worlds with these shapes, where they are possible."""
PASSES_OF_STAGE = 28
"""Micro-batches of a healthy pipeline for each stage after the first: its bubble is 3.6 % of the device time."""
GRAPH_STEPS = 24
"""A shorter record starts after the program has captured its graph."""
NOT_IN_GRAPHS = frozenset(
    {
        Knob.RESULT_READS,
        Knob.SMALL_KERNELS,
        Knob.HOST_PYTHON,
        Knob.OFFLOAD,
        Knob.RESULTS_TO_HOST,
        Knob.DEVICE_COPIES,
        Knob.LAYOUT,
        Knob.FIRST_USE,
        Knob.COMPILATION,
        Knob.MANAGED_MEMORY,
    }
)
"""Causes in the middle of passes, which a graph does not have or cannot contain."""
OF_SHAPES = frozenset(
    {Knob.PIPELINE_BUBBLE, Knob.UNEVEN_STAGES, Knob.TENSOR_COMMUNICATION, Knob.SMALL_MICRO_BATCHES, Knob.GRAPH_CAPTURE}
)
"""Causes of programs of some shapes only."""
SMALL_PASSES_RANKS = 2
"""Most ranks of a world with many small micro-batches: its record is large."""
MIGRATION_NS = 20_000
"""Time from one migration of managed memory to the next."""
LAUNCH_NS = 4_000
PASS_HOST_NS = 80_000
"""Time of the host for each pass, in addition to that of its operators: the batch, its copy, and the backward call."""


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
        stages: Stages of the pipeline; each has ``layers`` layers.
        tensor: Ranks that share each layer.
        passes: Micro-batches of a healthy step: forward and backward passes for one step of the optimizer.
        graphs: True if forward and backward pass are a CUDA graph.
        prefetches: True if another thread copies batches, on a stream of its own.
        helpers: Threads that sleep most of the time.
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
    stages: int = 1
    tensor: int = 1
    passes: int = 1
    graphs: bool = False
    prefetches: bool = False
    helpers: int = 0

    @property
    def device_ns(self) -> int:
        """Mean device time of a healthy step: the backward pass takes twice as long as the forward pass."""
        return 3 * self.layers * self.operators * self.kernel_ns * self.passes

    @property
    def pass_host_ns(self) -> int:
        """Mean time of the host for the two passes of a micro-batch."""
        return PASS_HOST_NS + 2 * self.layers * self.operators * (self.operator_ns + LAUNCH_NS)

    @property
    def micro_batches(self) -> int:
        """Forward and backward passes of a step. Causes change their number, not the device time of all of them."""
        if Knob.PIPELINE_BUBBLE in self.strengths:
            healthy_bubble = (self.stages - 1) / self.passes
            return max(1, round((self.stages - 1) / (healthy_bubble + self.strengths[Knob.PIPELINE_BUBBLE])))
        if Knob.SMALL_MICRO_BATCHES in self.strengths:
            host_bound = (1 + self.strengths[Knob.SMALL_MICRO_BATCHES]) * self.device_ns / self.pass_host_ns
            return max(self.passes + 1, round(host_bound))
        return self.passes

    @property
    def data(self) -> int:
        """Replicas of the model."""
        return self.ranks // (self.stages * self.tensor)

    @property
    def pass_kernel_ns(self) -> float:
        """Mean duration of a kernel of the forward pass of one micro-batch."""
        return self.kernel_ns * self.passes / self.micro_batches

    def added_ns(self, knob: Knob) -> float:
        """Return the time that a cause adds to a step; 0 if the world does not have it."""
        return self.strengths.get(knob, 0.0) * self.device_ns

    def added_to_pass(self, knob: Knob) -> float:
        """Return the time that a cause adds to the passes of one micro-batch."""
        return self.added_ns(knob) / self.micro_batches

    def without(self, knob: Knob) -> World:
        """Return the same world without a cause."""
        return replace(self, strengths={other: value for other, value in self.strengths.items() if other is not knob})


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of ``17`` or ``1-200``, the last one included."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


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
    if not serves:
        world = _draw_shape(Random(f"{seed}/shape"), world)
    # A step that is short next to the host's own work would not be healthy.
    shortest = SHORTEST_STEP if world.passes == 1 else max(SHORTEST_STEP, 3 * world.passes * world.pass_host_ns)
    shortest_kernel = -(-shortest // (3 * world.layers * world.operators * world.passes))
    world = replace(world, kernel_ns=max(world.kernel_ns, shortest_kernel))
    strengths = _draw_strengths(random, world)
    if Knob.RESULT_READS in strengths:
        # Reads cost little next to long kernels. Many short ones make a step that is healthy without the reads.
        kernel_ns = max(random.randint(15, 50) * 1_000, round(1.5 * (world.operator_ns + LAUNCH_NS)))
        layers = -(-SHORTEST_STEP // (3 * world.operators * kernel_ns))
        world = replace(world, kernel_ns=kernel_ns, layers=max(world.layers, layers))
    if Knob.SMALL_MICRO_BATCHES in strengths:  # else there would be very many
        world = replace(world, kernel_ns=shortest_kernel)
    workers = world.workers
    if Knob.SLOW_LOADER in strengths:
        workers = 0
    elif Knob.SLOW_WORKERS in strengths:
        workers = random.choice((1, 2, 4))
    cores = 2 if Knob.OTHER_PROGRAMS in strengths else world.cores
    world = replace(world, workers=workers, cores=cores, strengths=strengths)
    return replace(world, steps=_draw_steps(random, world))


def _draw_shape(random: Random, world: World) -> World:
    """Draw how a training program uses its ranks, and how it launches its work."""
    draws = [random.random() for _ in range(6)]  # all, so that one shape does not change the draws of another
    stages, tensor, passes, layers, operators = 1, 1, 1, world.layers, world.operators
    if world.ranks > 1 and draws[0] < PIPELINES:
        stages = random.choice((2, 4)) if world.ranks == 4 else 2
        passes = PASSES_OF_STAGE * (stages - 1)
        layers, operators = random.randint(1, 4 // stages), min(operators, 4)
    elif draws[1] < ACCUMULATION:
        passes, layers = random.choice((2, 4)), min(layers, 6)
    if world.ranks >= 2 * stages and draws[2] < TENSOR_PARALLEL:
        tensor = random.choice([part for part in (2, 4) if part * stages <= world.ranks])
    return replace(
        world,
        stages=stages,
        tensor=tensor,
        passes=passes,
        layers=layers,
        operators=operators,
        graphs=stages == tensor == passes == 1 and draws[3] < GRAPHS,
        prefetches=draws[4] < PREFETCHES,
        helpers=random.randint(1, 2) if draws[5] < HELPERS else 0,
    )


def _draw_steps(random: Random, world: World) -> int:
    strengths = world.strengths
    a_step = world.ranks * world.layers * world.operators * 3 * world.micro_batches
    if world.stages > 1:
        a_step += 4 * world.ranks * world.micro_batches
    if Knob.SMALL_KERNELS in strengths:
        a_step += round(world.ranks * strengths[Knob.SMALL_KERNELS] * world.device_ns / world.operator_ns)
    if Knob.MANAGED_MEMORY in strengths:
        a_step += round(world.ranks * world.added_ns(Knob.MANAGED_MEMORY) / MIGRATION_NS)
    most = max(4, min(200, MOST_KERNELS // a_step))
    growth: float = (most / 3) ** random.random()
    steps = round(3 * growth)
    if strengths.keys() & {Knob.CHECKPOINT, Knob.EVALUATION, Knob.COMPILATION, Knob.GRAPH_CAPTURE}:
        steps = max(steps, min(most, 8))
    if strengths.keys() & {Knob.FIRST_USE, Knob.START_UP}:
        steps = min(steps, 10)
    return max(3, steps)


def _is_possible(knob: Knob, world: World) -> bool:
    """Return whether a program of this shape can have a cause."""
    facts = KNOBS[knob]
    if facts.serves != world.serves or facts.ranks > world.ranks or (world.graphs and knob in NOT_IN_GRAPHS):
        return False
    match knob:
        case Knob.PIPELINE_BUBBLE | Knob.UNEVEN_STAGES:
            return world.stages > 1
        case Knob.TENSOR_COMMUNICATION:
            return world.tensor > 1
        case Knob.INTERCONNECT:
            return world.data > 1
        case Knob.SMALL_MICRO_BATCHES:
            return world.stages == 1 < world.passes and world.ranks <= SMALL_PASSES_RANKS
        case Knob.GRAPH_CAPTURE:
            return world.graphs
        case Knob.RESULT_READS | Knob.SMALL_KERNELS:
            return world.passes == 1
        case _:
            return True


def _draw_strengths(random: Random, world: World) -> dict[Knob, float]:
    if random.random() < HEALTHY_WORLDS:
        return {}
    draw = random.random()
    wanted = 1 if draw < MANY_CAUSES[0] else 2 if draw < MANY_CAUSES[1] else 3
    possible = [facts for facts in KNOBS.values() if _is_possible(facts.knob, world)]
    # Else causes of several ranks and of rare shapes would be rare.
    possible += [facts for facts in possible if facts.ranks > 1] * 3
    possible += [facts for facts in possible if facts.knob in OF_SHAPES] * 2
    chosen: dict[Knob, float] = {}
    for _ in range(wanted):
        facts = random.choice(possible)
        if any(frozenset({facts.knob, other}) in APART for other in chosen):
            continue
        chosen[facts.knob] = random.uniform(facts.least, facts.most)
    return chosen
