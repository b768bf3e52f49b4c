"""Facts in the annotations of serving engines about their steps."""

import polars as pl
import pytest

from traceviz.analyses.derived.steps.serving import SERVING_NAME, EngineStep, engine_step

NAMES = {
    # vLLM: prompts, their tokens; requests that generate, their tokens
    "execute_context_1(888_788544)_generation_0(0)": EngineStep("vLLM", "prefill", 1, 0, 888, 0),
    "execute_context_3(512)_generation_2(50)": EngineStep("vLLM", "mixed", 3, 2, 512, 50),
    "execute_context_0(0)_generation_64(64)": EngineStep("vLLM", "decode", 0, 64, 0, 64),
    "execute_context_0(0)_generation_0(0)": EngineStep("vLLM", "idle", 0, 0, 0, 0),
    "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)": EngineStep(
        "vLLM", "decode", 0, 32, 0, 32
    ),
    "execute_7_context_3(sq128sk256sqsq1sqsk1)_generation_2(sq2sk300sqsq1sqsk1)": EngineStep(
        "vLLM", "mixed", 3, 2, 128, 2
    ),
    "step[DECODE bs=32]": EngineStep("SGLang", "decode", 0, 32, 0, 32),
    "step[EXTEND bs=2 toks=512]": EngineStep("SGLang", "prefill", 2, 0, 512, 0),
    "execute_new_1_cached_2": EngineStep("vLLM", "mixed", 1, 2, None, None),
    "execute_new_0_cached_7": EngineStep("vLLM", "decode", 0, 7, 0, None),
    "execute_new_4_cached_0": EngineStep("vLLM", "prefill", 4, 0, None, 0),
    "step[TARGET_VERIFY bs=4]": EngineStep("SGLang", "decode", 0, 4, 0, None),
    "step[DRAFT_EXTEND_V2 bs=4]": EngineStep("SGLang", "decode", 0, 4, 0, None),
    "step[MIXED bs=3]": EngineStep("SGLang", "mixed", None, None, None, None),
    "[Executor] _forward_step 7: 1 ctx reqs, 888 ctx tokens, 2 gen reqs": EngineStep(
        "TensorRT-LLM", "mixed", 1, 2, 888, 2
    ),
    "[Executor] _forward_step 12: 0 ctx reqs, 64 gen reqs": EngineStep("TensorRT-LLM", "decode", 0, 64, 0, 64),
    "[Executor] _forward_step: 2 ctx reqs, 5 gen reqs": EngineStep("TensorRT-LLM", "mixed", 2, 5, None, 5),
    "executeStep: 3 ctx reqs, 0 gen reqs": EngineStep("TensorRT-LLM", "prefill", 3, 0, None, 0),
}

OTHERS = (
    "ProfilerStep#3",
    "step 5",
    "step[0]",
    "step[TRAIN bs=3]",
    "execute_context_menu(5)",
    "execute_new_password_request",
    "Optimizer.step#Adam.step",
    "forward",
    "my execute_context_1(8)_generation_0(0)",
)


@pytest.mark.parametrize(("name", "step"), NAMES.items(), ids=list(NAMES))
def test_the_name_of_an_engines_step_says_phase_requests_and_tokens(name, step):
    assert engine_step(name) == step


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_are_no_steps_of_an_engine(name):
    assert engine_step(name) is None


def test_the_pattern_that_looks_for_steps_finds_all_of_them():
    found = pl.Series([*NAMES, *OTHERS]).str.contains(SERVING_NAME)
    assert found[: len(NAMES)].all()
    assert pl.Series(OTHERS).filter(found[len(NAMES) :]).to_list() == ["step[TRAIN bs=3]"]  # engine_step decides
