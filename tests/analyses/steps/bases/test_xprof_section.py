"""Sentences of the TensorFlow profiler below and at its thresholds."""

import pytest

from traceviz.analyses.steps.bases.xprof_section import Shares, conclusion, statements


def shares(**given):
    return Shares(**{**dict.fromkeys(Shares.__dataclass_fields__, 0.0), **given})


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        ({"input": 0.2}, "HIGHLY input-bound because 20.0%"),
        ({"input": 0.1999, "other": 0.9}, "MODERATELY input-bound because 20.0%"),
        ({"input": 0.05}, "MODERATELY input-bound because 5.0%"),
        ({"input": 0.0499, "other": 0.03}, "POTENTIALLY input-bound because 3.0%"),
        ({"input": 0.0499, "other": 0.0299}, "NOT input-bound because only 5.0%"),
    ],
)
def test_the_sentence_on_input_begins_at_20_5_and_3_percent(given, bound):
    assert conclusion(shares(**given)).startswith(f"Your program is {bound}")


@pytest.mark.parametrize(
    ("given", "begins"),
    [
        ({"output": 0.2}, ["Your program is HIGHLY output-bound because 20.0%"]),
        ({"output": 0.05}, ["Your program is MODERATELY output-bound because 5.0%"]),
        ({"output": 0.0499}, []),
        ({"kernel_launch": 0.0299}, []),
        ({"kernel_launch": 0.03}, ["3.0 % of the total step time sampled is spent on 'Kernel Launch'."]),
        ({"device_collectives": 0.15}, ["15.0 % of the total step time sampled is spent on 'Device Collective"]),
        ({"input": 0.05, "other": 0.03}, ["3.0 % of the total step time sampled is spent on 'All Others' time."]),
        ({"input": 0.04, "other": 0.5}, []),  # then the conclusion is about it
    ],
)
def test_output_is_mentioned_from_5_percent_on_and_the_rest_from_3_percent_on(given, begins):
    found = statements(shares(**given), tf_data=False)
    assert [sentence[: len(words)] for sentence, words in zip(found, begins, strict=True)] == begins


def test_kernel_launch_collectives_and_the_rest_are_mentioned_from_3_percent_on():
    notable = shares(kernel_launch=0.03, device_collectives=0.03, other=0.03, input=0.3)
    found = " ".join(statements(notable, tf_data=True))
    for words in ("'Kernel Launch'", "'Device Collective Communication'", "'All Others' time", "TF_GPU_THREAD_MODE"):
        assert words in found
    assert "TF_GPU_THREAD_MODE" not in " ".join(statements(notable, tf_data=False))
    assert shares(input=0.25, output=0.25, device_compute=0.125, device_collectives=0.125).idle == 0.25
