"""Steps of transformers' ``generate``, by the Python calls that PyTorch's profiler records with its stacks."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.serving import engine_calls
from traceviz.analyses.run import analyze

UTILS = "transformers/generation/utils.py"
LOOP, PREPARE = f"{UTILS}(3122): _sample", f"{UTILS}(660): prepare_inputs_for_generation"


def call(start, dur, name, **more):
    return (start, dur, name, "python", more)


def generating(at=0):
    """Return ``generate`` from 0 to 1000, its loop from 100 on, which prepares at 120, 400, 600 and 800."""
    own = [call(at, 1000, f"{UTILS}(2581): generate"), call(at + 10, 50, f"{UTILS}(2072): _prepare_generation_config")]
    prepared = [call(at + start, 20, PREPARE) for start in (120, 400, 600, 800)]
    return [*own, call(at + 100, 900, LOOP), *prepared]


def steps_of(view):
    return list(engine_calls(view).select("start_ns", "end_ns", "phase").iter_rows())


PREFILL_AND_DECODE = [(120, 400, "prefill"), (400, 600, "decode"), (600, 800, "decode"), (800, 1000, "decode")]


def test_the_first_call_of_the_model_reads_the_prompts_and_the_others_generate():
    view = trace(host_ops=generating())
    assert steps_of(view) == PREFILL_AND_DECODE
    assert (training_steps(view).source, training_steps(view).marker) == ("serving", "transformers")


def test_every_loop_has_a_prefill_and_time_between_two_is_in_no_step():
    steps = steps_of(trace(host_ops=[*generating(), *generating(at=2000)]))
    assert steps[:4] == PREFILL_AND_DECODE
    assert steps[4:] == [(start + 2000, end + 2000, phase) for start, end, phase in PREFILL_AND_DECODE]


def test_a_loop_that_ran_before_the_recording_began_only_decodes():
    calls = [
        call(0, 1000, f"{UTILS}(2581): generate"),
        call(0, 1000, LOOP),
        call(20, 5, PREPARE),
        call(500, 5, PREPARE),
    ]
    assert steps_of(trace(host_ops=calls)) == [(20, 500, "decode"), (500, 1000, "decode")]


def test_inputs_that_a_model_prepares_with_the_help_of_its_base_are_prepared_once():
    own = [
        call(start - 5, 30, "transformers/models/llama/modeling.py(9): prepare_inputs_for_generation")
        for start in (120, 400)
    ]
    steps = steps_of(trace(host_ops=[*generating(), *own]))
    assert [start for start, _, _ in steps] == [115, 395, 600, 800]


def test_the_tokens_that_a_draft_model_proposes_are_part_of_the_step():
    assisted = f"{UTILS}(4001): _assisted_decoding"
    drafts = [call(130, 100, LOOP), call(140, 5, PREPARE), call(180, 5, PREPARE)]
    calls = [call(0, 50, "ready"), call(100, 900, assisted), *drafts, call(300, 5, PREPARE), call(700, 5, PREPARE)]
    assert steps_of(trace(host_ops=calls)) == [(300, 700, "prefill"), (700, 1000, "decode")]


@pytest.mark.parametrize(
    "name",
    [
        "transformers/generation/utils.py(2): _beam_search",
        "/env/lib/python3.12/site-packages/transformers/generation/utils.py(9): _sample",
        "C:\\env\\transformers\\generation\\utils.py(9): beam_sample",
        "transformers/generation_utils.py(1583): greedy_search",
    ],
)
def test_loops_of_all_versions_are_known(name):
    calls = [call(0, 5, "begin"), call(10, 90, name), call(20, 5, PREPARE)]
    assert steps_of(trace(host_ops=calls)) == [(20, 100, "prefill")]


@pytest.mark.parametrize("name", ["game/generation/utils.py(3): _sample", f"{UTILS}(12): _sample_docs", "my_sample"])
def test_other_functions_are_no_loops(name):
    assert steps_of(trace(host_ops=[call(0, 5, "begin"), call(10, 90, name), call(20, 5, PREPARE)])) == []


def test_programs_that_train_and_generate_between_are_not_serving():
    optimizer = (1100, 20, "Optimizer.step#AdamW.step", "annotation")
    assert steps_of(trace(host_ops=[*generating(), optimizer])) == []


def test_shapes_of_the_first_embedding_of_a_step_say_requests_and_tokens():
    embeddings = [(start, 10, "aten::embedding", "op") for start in (150, 170, 420, 620)]
    ops = sorted([*generating(), *embeddings])
    number = {start: at for at, (start, _, name, *_) in enumerate(ops) if name == "aten::embedding"}
    shapes = {150: "[[500,64],[3,17],[],[],[]]", 170: "[[128,64],[1,17],[],[],[]]", 420: "[[500, 64], [3, 1]]"}
    args = [(number[start], "Input Dims", {"text": text}) for start, text in shapes.items()]
    report = analyze(tables(host_ops=ops, op_args=args))
    every = next(grid for grid in report.grids("serving") if grid.title == "Every engine step")
    position = [column.name for column in every.columns]
    figures = [
        tuple(row[position.index(name)] for name in ("prompts", "prompt_tokens", "running", "new_tokens"))
        for row in every.rows
    ]
    assert figures == [(3, 51, 0, 0), (0, 0, 3, 3), (None,) * 4, (None,) * 4]
    (prefill, decode) = report.rows("serving")
    assert (prefill["tokens"], decode["tokens"]) == (51, None)
    assert report.verdict.sentence.startswith("Serving with transformers: 1 prefill step of 51 tokens (280 ns) and ")
