"""Parameters of a PyTorch model and the sizes of its inputs, from the shapes of its operators' inputs.

``record_shapes=True`` records them::

    aten::conv2d   [[32,3,224,224],[64,3,7,7],[64],...]     a batch of 32 images, and a weight of 64 filters
    aten::linear   [[32,512],[10,512],[10]]                 a batch of 32 rows, and a weight from 512 to 10

The weights are those of the model, for any library and any batch size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from traceviz.compare.sides.sides import Side, grid, rows
from traceviz.compare.work.kinds import bare_name
from traceviz.core.units import Value

Shape = tuple[int, ...]
Layer = tuple[str, Shape]
"""Name of a layer, and the shape of its weight."""

BY_SHAPES = "By shapes"
"""Title of the grid of operators by the shapes of their inputs."""

ALIKE = 0.8
"""Share of common parameters from which it is the same model."""
OTHER = 0.5
"""Share of common parameters below which it is another model."""
OTHER_SIZE = 1.1
"""Factor from which inputs have another size."""

_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
_INPUT_AND_WEIGHT = {**dict.fromkeys((*_CONVOLUTIONS, "linear"), (0, 1)), "embedding": (1, 0)}
"""Places of the input and of the weight among the inputs of operators that layers call."""
_BELOW = {"convolution": (0, 1), "addmm": (1, 2)}
"""The same for the operators below them, used if those above are not recorded. ``addmm`` transposes weights."""
_ABOVE = {"convolution": {*_CONVOLUTIONS}, "addmm": {"linear"}}
_LAYERS = {**dict.fromkeys(_CONVOLUTIONS, "convolution"), "addmm": "linear"}
"""Layer names of operators with a different name."""

_LONGEST = 2_000
"""Number of characters of a list of shapes that are examined; inputs and weights come first."""
_SHAPE = re.compile(r"\[([\d, ]*)\]")


@dataclass(frozen=True, slots=True)
class Parameters:
    """Weights of the layers of a model: how often a step uses each, and the mean size of its inputs.

    Args:
        uses: Calls per step by layer (operator and shape of the weight).
        inputs: Elements of the mean input by layer.
        batches: Mean first dimension of the inputs by layer.
    """

    uses: Mapping[Layer, float]
    inputs: Mapping[Layer, float] = field(repr=False)
    batches: Mapping[Layer, float] = field(repr=False)

    def given(self, layer: Layer) -> float:
        """Return the number of elements that a step gives to a layer."""
        return self.uses[layer] * self.inputs[layer]

    @property
    def total(self) -> float:
        """Uses of all parameters in a step."""
        return sum(self.uses.values())


def parameters(side: Side) -> Parameters | None:
    """Return the parameters that the steps of a side use; ``None`` if no shapes show them."""
    uses: dict[Layer, float] = {}
    elements: dict[Layer, float] = {}
    first: dict[Layer, float] = {}
    for layer, size, calls in _layers(side):
        uses[layer] = uses.get(layer, 0.0) + calls
        elements[layer] = elements.get(layer, 0.0) + calls * prod(size)
        first[layer] = first.get(layer, 0.0) + calls * size[0]
    if not uses:
        return None
    return Parameters(
        uses,
        {layer: total / uses[layer] for layer, total in elements.items()},
        {layer: total / uses[layer] for layer, total in first.items()},
    )


def _layers(side: Side) -> Iterator[tuple[Layer, Shape, float]]:
    """Yield layer, shape of its input and calls per step, for every operator with a weight."""
    for report, steps in zip(side.reports, side.rank_steps_by_run, strict=True):
        shaped = [row for row in rows(grid(report, "operators", BY_SHAPES)) if row.get("calls_per_step")]
        names = [bare_name(str(row["name"])) for row in shaped]
        places = {**_INPUT_AND_WEIGHT, **{name: _BELOW[name] for name in _BELOW if not _ABOVE[name] & {*names}}}
        for name, row in zip(names, shaped, strict=True):
            found = _input_and_weight(str(row["shapes"]), *places[name]) if name in places else None
            if found:
                size, weight = found
                layer = _LAYERS.get(name, name), weight[::-1] if name == "addmm" else weight
                # Mixed precision records a layer twice: in 32 bits, and within that in 16. Older reports do not say so.
                calls = row.get("outer_calls_per_step", row["calls_per_step"])
                yield layer, size, _number(calls) * steps / side.rank_steps


def _input_and_weight(text: str, place: int, weight: int) -> tuple[Shape, Shape] | None:
    """Return the shapes at two places of a list of shapes; ``None`` if one is missing, or is not of a tensor."""
    found = _SHAPE.findall(text[:_LONGEST])
    if len(found) <= max(place, weight):
        return None
    shapes = [tuple(int(size) for size in found[index].split(",") if size.strip()) for index in (place, weight)]
    return (shapes[0], shapes[1]) if shapes[0] and len(shapes[1]) > 1 else None


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def in_common(base: Parameters, new: Parameters) -> float:
    """Return the share of parameter uses that both sides have; the uses of each side add up to one."""
    return sum(
        min(base.uses[layer] / base.total, new.uses[layer] / new.total) for layer in base.uses.keys() & new.uses.keys()
    )


def are_same_layers(base: Side, new: Side) -> bool:
    """Return whether both sides use the same weights, and give them equally large inputs, as shapes show."""
    before, after = parameters(base), parameters(new)
    if before is None or after is None:
        return False
    return in_common(before, after) >= ALIKE and sizes_of_inputs(before, after) is None


def only_in(base: Parameters, new: Parameters) -> list[str]:
    """Return the layers that only the first side has, the most used first: ``convolution [64, 3, 7, 7]``."""
    layers = sorted(base.uses.keys() - new.uses.keys(), key=lambda layer: (-base.uses[layer], layer))
    return [f"{kind} {list(weight)}" for kind, weight in layers]


def sizes_of_inputs(base: Parameters, new: Parameters) -> tuple[float, tuple[float, float] | None] | None:
    """Return the factor of input elements per step, new over base, if most common layers agree that it differs.

    Four batches of 8 are as much as one of 32.

    Returns:
        The factor of the layer in the middle, and the batches of both sides if they explain it; ``None`` if steps get
        equally much on both sides.
    """
    common = [layer for layer in sorted(base.uses.keys() & new.uses.keys()) if base.inputs[layer] and new.inputs[layer]]
    factors = sorted((new.given(layer) / base.given(layer), layer) for layer in common)
    others = [factor for factor, _ in factors if not 1 / OTHER_SIZE < factor < OTHER_SIZE]
    if not factors or len(others) <= len(factors) / 2:
        return None
    factor, layer = factors[len(factors) // 2]
    batches = base.batches[layer], new.batches[layer]
    return factor, batches if abs(batches[1] / batches[0] / factor - 1) < OTHER_SIZE - 1 else None
