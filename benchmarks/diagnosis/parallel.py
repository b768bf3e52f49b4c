"""The places of ranks in a parallel program: stages of a pipeline, replicas of the model, parts of each layer."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.diagnosis.worlds import World


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a rank among the others.

    Args:
        stage: Number of its stage.
        data: Ranks with the same part of the model.
        tensor: Ranks that share its layers.
        before: Rank of the stage before it with the same replica and part.
        after: Rank of the stage after it.
    """

    stage: int
    data: tuple[int, ...]
    tensor: tuple[int, ...]
    before: int | None
    after: int | None


def place_of(world: World, rank: int) -> Place:
    """Return the place of a rank. Parts of a layer are neighbours, then replicas, then stages."""
    a_stage = world.data * world.tensor
    stage, within = divmod(rank, a_stage)
    part = within % world.tensor
    first = stage * a_stage
    return Place(
        stage,
        data=tuple(first + part + replica * world.tensor for replica in range(world.data)),
        tensor=tuple(rank - part + other for other in range(world.tensor)),
        before=rank - a_stage if stage else None,
        after=rank + a_stage if stage < world.stages - 1 else None,
    )


def order_passes(world: World, stage: int) -> list[bool]:
    """Return the order of the passes of a stage in a step: true for a forward pass, false for a backward pass.

    A stage runs forward passes until the first gradients can arrive, and then a forward and a backward pass in turn. A
    program without a pipeline runs both passes of each micro-batch.
    """
    first = min(world.stages - 1 - stage, world.micro_batches)
    return [True] * first + [True, False] * (world.micro_batches - first) + [False] * first
