"""The repeating parts of one pass over a model are its layers."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.steps.search import training_steps

LAYERS = 8


def layers(begin=0, launch=0):
    """Return kernels of eight layers of 100 from ``begin`` on, and their launches, 10 per layer from ``launch`` on."""
    kernels, calls = [], []
    for layer in range(LAYERS):
        for part, name in enumerate(("attention", "gemm", "norm")):
            number = {"correlation_id": begin + 3 * layer + part}
            kernels.append((begin + 100 * layer + 30 * part, 25, name, number))
            calls.append((launch + 10 * layer + 3 * part, 2, "cudaLaunchKernel", number))
    return kernels, calls


def source(*passes, **others):
    """Return the source of steps for passes that start at these times on the host, and 1000 later on the device."""
    parts = [layers(1000 + begin, begin) for begin in passes]
    kernels, calls = ([row for part in parts for row in part[kind]] for kind in (0, 1))
    return training_steps(trace(kernels=kernels, cuda_api=calls, **others)).source


def test_8_layers_that_nothing_encloses_look_like_steps():
    assert source(0) == "kernel_cycle"


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("nn.Module: Net_0", "python"),
        ("forward", "annotation"),
        ("## forward ##", "annotation"),
        ("iteration 3", "annotation"),
    ],
)
def test_8_layers_launched_within_one_pass_are_no_steps(name, category):
    inside = [(10 * layer, 8, "nn.Module: Layer_1", "python") for layer in range(LAYERS)]
    assert source(0, host_ops=[(0, 100, name, category), *inside]) == "none"


@pytest.mark.parametrize("name", ["forward pass", "step 7", "[Executor] _forward_step 3: some ctx reqs"])
def test_8_layers_launched_within_one_range_of_a_pass_are_no_steps(name):
    assert source(0, nvtx=[(0, 100, name)]) == "none"


def test_layers_of_2_passes_are_no_steps_either():
    modules = [(begin, 100, "nn.Module: Net_0", "python") for begin in (0, 800)]
    assert source(0, 800, host_ops=modules) == "none"


@pytest.mark.parametrize("name", ["train", "main loop", "epoch 1"])
def test_a_range_around_the_whole_loop_is_no_pass(name):
    assert source(0, nvtx=[(0, 100, name)]) == "kernel_cycle"


def test_a_pass_for_each_repeat_makes_them_steps():
    modules = [(10 * step, 9, "nn.Module: Net_0", "python") for step in range(LAYERS)]
    assert source(0, host_ops=modules) == "kernel_cycle"


def test_8_layers_of_one_graph_launch_are_no_steps_and_graphs_launched_in_turn_are():
    graph = [(kernel[0], kernel[1], kernel[2], {"correlation_id": 5}) for kernel in layers(1000)[0]]
    one = trace(kernels=graph, cuda_api=[(0, 5, "cudaGraphLaunch", {"correlation_id": 5})])
    assert training_steps(one).source == "none"
    turns = [(*kernel[:3], {"correlation_id": kernel[0] // 100}) for kernel in graph]
    calls = [(10 * call, 5, "cudaGraphLaunch", {"correlation_id": 10 + call}) for call in range(LAYERS)]
    assert training_steps(trace(kernels=turns, cuda_api=calls)).source == "kernel_cycle"


def test_repeating_ranges_within_one_forward_pass_are_layers():
    each = [(0, 60, "attention"), (60, 30, "mlp")]
    ranges = [(10 + 100 * layer + at, dur, name) for layer in range(LAYERS) for at, dur, name in each]
    kernels = [(100 * layer, 50, f"k{layer}") for layer in range(LAYERS)]
    assert training_steps(trace(nvtx=ranges, kernels=kernels)).source == "nvtx_cycle"
    assert training_steps(trace(nvtx=[(0, 900, "forward"), *ranges], kernels=kernels)).source == "none"


@pytest.mark.parametrize(
    ("name", "rises", "found"),
    [
        ("FSDP::post_forward (blocks.{}._wrapped), op_id = 77", True, "none"),
        ("FSDP::pre_backward (layers.{})", False, "none"),
        ("load.{}", True, "nvtx_cycle"),
        ("blocks.1 of round {}", True, "nvtx_cycle"),
    ],
)
def test_ranges_of_layers_with_rising_or_falling_numbers_are_one_pass(name, rises, found):
    numbers = range(LAYERS) if rises else range(LAYERS, 0, -1)
    ranges = [
        (100 * place + at, 40, text)
        for place, number in enumerate(numbers)
        for at, text in ((0, name.format(number)), (50, "aten::add"))
    ]
    kernels = [(100 * layer, 50, f"k{layer}") for layer in range(LAYERS)]
    assert training_steps(trace(nvtx=ranges, kernels=kernels)).source == found
