"""Kinds of time, by the stacks in which it was spent."""

import numpy as np
import polars as pl
import pytest

from tests.analyses.builders import trace
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.stacks.kinds import KIND_LABELS
from traceviz.analyses.derived.stacks.recorded import function_frames
from traceviz.analyses.derived.stacks.sampled import sampled_stacks
from traceviz.analyses.derived.stacks.trees import stack_tree

KINDS = {
    "train.py:9 main > train.py:88 save_checkpoint > os.fsync": ("saving", "io"),
    "train.py:9 main > torch/serialization.py:900 save > torch/serialization.py:1100 _save": (
        "saving",
        "serialization",
    ),
    "train.py:9 main > train.py:12 step > torch.save": ("saving", "compute"),
    "train.py:9 main > train.py:12 step > os.fsync": ("io", "io"),
    "train.py:9 main > train.py:12 step > time.sleep": ("sleep", "sleep"),
    "train.py:9 main > train.py:12 next_batch > time.sleep": ("input", "sleep"),
    "train.py:9 main > queue.py:171 get > threading.py:327 wait": ("lock", "lock"),
    "train.py:9 main > lock.acquire": ("lock", "lock"),
    "train.py:9 main > json/__init__.py:179 dump": ("serialization", "serialization"),
    "train.py:9 main > pickle.dumps": ("serialization", "serialization"),
    "train.py:9 main > logging/__init__.py:1100 emit > stream.flush": ("logging", "io"),
    "train.py:9 main > print": ("logging", "python"),
    "train.py:9 main > torch/nn/modules/linear.py:114 forward": ("compute", "compute"),
    "train.py:9 main > train.py:30 loss": ("python", "python"),
    "train.py:9 main > torch/autograd/graph.py:823 _engine_run_backward > engine.run_backward": ("compute", "compute"),
    "train.py:9 main > paddle/base/dygraph/tensor_patch_methods.py:357 backward > core.eager.run_backward": (
        "compute",
        "compute",
    ),
    "train.py:9 main > _C_ops.linear": ("compute", "compute"),
    "train.py:9 main > model.__call__": ("python", "python"),
    "train.py:9 main > loss.item": ("device_wait", "device_wait"),
    "train.py:9 main > torch/distributed/distributed_c10d.py:2500 all_reduce": ("collective", "compute"),
    "train.py:9 main > jax/_src/compiler.py:300 compile_or_get_cached": ("compilation", "compute"),
    "train.py:9 main > torch/_dynamo/eval_frame.py:450 _fn > torch/nn/modules/linear.py:114 forward": (
        "compute",
        "compute",
    ),
    "train.py:1 <module> > <frozen importlib._bootstrap>:1000 _find_and_load > keras/src/saving/a.py:3 <module>": (
        "import",
        "compute",
    ),
    "train.py:1 <module> > <frozen importlib._bootstrap>:1000 _find_and_load > run.py:1 <module> > run.py:7 fit": (
        "python",
        "python",
    ),
    "train.py:9 main > train.py:50 load_checkpoint": ("python", "python"),
    (
        "tensorflow/python/autograph/impl/api.py:600 wrapper > "
        "tensorflow/python/data/ops/from_generator_op.py:9 next > gen.py:4 tokens"
    ): ("input", "python"),
    "train.py:9 main > model.py:7 Net.save_for_backward": ("python", "python"),
    "gen.py:9 main > /tmp/inductor/ab/cab.py:90 call > triton/compiler/compiler.py:487 launch_metadata": (
        "compute",
        "compute",
    ),
    "fit.py:9 main > jax/_src/stages.py:500 Compiled.call > jax/_src/pjit.py:9 _call": ("compute", "compute"),
    "fit.py:9 main > jax/_src/stages.py:500 Lowered.compile > jax/_src/x.py:9 run": ("compilation", "compute"),
    # Compiled code runs within frames of the compiler, and its backward pass is compiled there when it first runs
    (
        "train.py:9 main > torch/_functorch/aot_autograd.py:1130 forward > "
        "torch/_functorch/_aot_autograd/subclass_codegen.py:codegen(backward):14 impl_fn > torch/_ops.py:9 __call__"
    ): ("compute", "compute"),
    (
        "train.py:9 main > torch/_functorch/_aot_autograd/runtime_wrappers.py:2200 backward > "
        "torch/_inductor/compile_fx.py:9 compile_fx > torch/fx/a.py:3 run"
    ): ("compilation", "compute"),
    # Python's own library serves its caller: a numeric library, or the program
    "train.py:9 main > sklearn/utils/validation.py:9 check_array > contextlib.py:141 __exit__": ("compute", "compute"),
    "train.py:9 main > contextlib.py:141 __exit__": ("python", "python"),
    "threading.py:982 run > threading.py:9 work": ("python", "python"),
    # A progress bar is logging for its own time, never for the iterable that it wraps
    "train.py:9 main > tqdm/std.py:1180 __iter__": ("logging", "python"),
    "train.py:9 main > tqdm/std.py:1180 __iter__ > tqdm/std.py:1240 update > sys.stderr.write": ("logging", "io"),
    ("train.py:9 main > tqdm/std.py:1180 __iter__ > torch/utils/data/dataloader.py:700 __next__ > train.py:23 pad"): (
        "input",
        "python",
    ),
    "train.py:9 main > rich/progress.py:1210 track > train.py:40 frames > numpy/a.py:1 sort": ("compute", "compute"),
    "train.py:9 main > alive_progress/core/progress.py:9 __iter__ > train.py:40 rows": ("python", "python"),
    "train.py:9 main > click/_termui_impl.py:330 generator > train.py:40 rows > time.sleep": ("sleep", "sleep"),
    "train.py:9 main > tqdm/std.py:856 inner > pandas/core/apply.py:9 apply > train.py:5 clean": ("python", "python"),
    # What a tracker or a logging decorator calls is the program's; what the program formats for a message is logging
    "train.py:1 <module> > loguru/_logger.py:1290 catch_wrapper > train.py:9 main > train.py:30 loss": (
        "python",
        "python",
    ),
    "train.py:1 <module> > mlflow/sklearn/a.py:3 fit > train.py:9 main > train.py:88 save_checkpoint > os.fsync": (
        "saving",
        "io",
    ),
    "train.py:9 main > mlflow/sklearn/a.py:3 fit > train.py:9 objective > mlflow/b.py:3 log_metric": (
        "logging",
        "python",
    ),
    "train.py:9 main > logging/__init__.py:1100 emit > train.py:5 Json.format > json/encoder.py:9 encode": (
        "logging",
        "serialization",
    ),
    "train.py:9 main > wandb/run.py:3 log > numpy/a.py:1 histogram": ("logging", "compute"),
}


@pytest.mark.parametrize("stack", KINDS)
def test_a_stack_has_a_purpose_and_an_activity(stack: str) -> None:
    view = trace(**sampled((0, 10, stack)))
    assert sampled_stacks(view).select("kind", "activity").row(0) == KINDS[stack]
    assert set(KINDS[stack]) <= set(KIND_LABELS)


@pytest.mark.parametrize(
    ("stack", "seen", "kind"),
    [
        ("train.py:9 main > model.fetch_all", {"cpu_ns": 0}, "wait"),
        ("train.py:9 main > model.fetch_all", {"cpu_ns": 2}, "python"),
        ("train.py:9 main", {"cpu_ns": 0, "samples": 4}, "python"),
        ("train.py:9 main", {"cpu_ns": 0, "samples": 5}, "wait"),
        ("train.py:9 main", {"state": "waiting"}, "wait"),
        # it could run, and others have the cores
        ("train.py:9 main", {"state": "running", "cpu_ns": 0}, "python"),
        ("train.py:9 main", {"state": "gil", "cpu_ns": 9}, "gil"),
        ("train.py:9 next_batch", {"state": "gil"}, "gil"),
        ("train.py:9 main > torch/a.py:1 backward", {"cpu_ns": 0}, "compute"),
        ("train.py:9 main > lock.acquire", {"cpu_ns": 9}, "python"),
        ("train.py:9 main > lock.acquire", {"cpu_ns": 5}, "lock"),
    ],
)
def test_what_was_seen_of_a_thread_corrects_what_its_stack_says(stack: str, seen: dict[str, object], kind: str) -> None:
    assert sampled_stacks(trace(**sampled((0, 10, stack, seen))))["kind"].to_list() == [kind]


def test_names_of_recorded_functions_are_frames() -> None:
    names = [
        "/home/me/lib/python3.11/site-packages/torch/nn/functional.py(12): relu",
        "/usr/lib/python3.11/threading.py(320): wait",
        "train.py(41): load",
        "<built-in method acquire of _thread.lock object at 0x7f>",
        "$api.py:3000 block_until_ready",
        "$time sleep",
    ]
    frames = function_frames(pl.Series(names)).select("file", "line", "function", "origin").rows()
    assert frames == [
        ("torch/nn/functional.py", 12, "relu", "library"),
        ("threading.py", 320, "wait", "standard"),
        ("train.py", 41, "load", "program"),
        ("", None, "acquire", "native"),
        ("api.py", 3000, "block_until_ready", "library"),
        ("", None, "time.sleep", "native"),
    ]


def test_a_stack_whose_caller_is_not_there_or_comes_later_has_none() -> None:
    rows = [(3, 9, "f", "a.py", 1, "program"), (5, 7, "g", "a.py", 2, "program"), (9, 3, "h", "a.py", 3, "program")]
    view = trace(stacks=[(0, 10, 9)], stack_frames=rows)
    tree = stack_tree(view)
    assert tree.parent.tolist() == [-1, -1, 0]
    assert sampled_stacks(view)["location"].to_list() == ["a.py:3 h"]


def test_totals_and_recursion_of_stacks() -> None:
    view = trace(**sampled((0, 10, "a.py:1 f > a.py:2 g > a.py:1 f"), (10, 5, "a.py:1 f > a.py:2 g")))
    tree = stack_tree(view)
    key = tree.frames["function"].rank("dense").to_numpy()
    own = np.array([0, 5, 10])
    assert tree.totals(own).tolist() == [15, 15, 10]
    assert tree.repeats(key).tolist() == [False, False, True]
