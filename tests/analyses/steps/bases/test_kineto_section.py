"""The plugin's recommendations for GPUs, from the figures of each."""

from types import SimpleNamespace

import pytest

from traceviz.analyses.steps.bases.kineto_section import _of_gpus


def said(*utilisations, **clues):
    known = {"first_major": 8, "tensor_core_share": 0, "eligible_share": 0.0, "full": None, **clues}
    gpus = [SimpleNamespace(ordinal=number, utilisation=share) for number, share in enumerate(utilisations)]
    return list(_of_gpus(SimpleNamespace(gpus=gpus, clues=SimpleNamespace(**known))))


@pytest.mark.parametrize(
    ("utilisations", "words"),
    [
        ((0.49, 0.5), "GPU 0 has low utilization."),
        ((0.9, 0.1, 0.2), "GPU 1 and 2 have low utilization."),
        ((0.1, 0.2, 0.3), "GPU 0, 1 and 2 have low utilization."),
        ((0.1, 0.1, 0.1, 0.9, 0.1), "GPU 0, 1, 2 and 4 have low utilization."),
    ],
)
def test_gpus_used_less_than_half_are_listed(utilisations, words):
    (sentence,) = said(*utilisations)
    assert sentence.startswith(f"{words} You could try to increase batch size")


@pytest.mark.parametrize(
    ("clues", "is_said"),
    [
        ({"eligible_share": 0.25}, True),
        ({"eligible_share": 0.25, "first_major": 7}, True),
        ({"eligible_share": 0.25, "first_major": 6}, False),
        ({"eligible_share": 0.25, "first_major": None}, False),
        ({"eligible_share": 0.0}, False),
        ({"eligible_share": 0.25, "tensor_core_share": 0.1}, False),
    ],
)
def test_mixed_precision_is_recommended_from_compute_capability_7_on_where_tensor_cores_idle(clues, is_said):
    assert [sentence[:37] for sentence in said(0.9, **clues)] == ["Kernels with 25% time are launched by"] * is_said


def test_memory_at_its_limit_is_told_in_gibibytes():
    full = SimpleNamespace(peak_bytes=15 * 2**30, memory_bytes=16 * 2**30, ordinal=3)
    (sentence,) = said(0.9, full=full)
    assert "(93.8% of 16.0GB on GPU3)" in sentence
