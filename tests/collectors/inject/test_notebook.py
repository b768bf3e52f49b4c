"""Unmodified programs under the hooks with the real TensorFlow, Keras and JAX, and what is read of what they leave."""

import signal
from pathlib import Path

import polars as pl
import pytest

import traceviz
from tests.collectors.inject.runs import Ran, run_under
from traceviz.collectors.base import Harvest, Window

pytestmark = pytest.mark.live

KERAS = Path(__file__).with_name("keras_training.py")
WINDOW = Window(first_step=5, steps=10)
STEPS = list(range(5, 15))

QUIET = "import os\nos.environ.update(TF_CPP_MIN_LOG_LEVEL='3', CUDA_VISIBLE_DEVICES='-1', JAX_PLATFORMS='cpu')\n"

DATA = f"""{QUIET}
import tensorflow as tf
def data(batches):
    return tf.data.Dataset.range(32 * batches).map(lambda value: tf.cast(value, tf.float32)).batch(32)
weight = tf.Variable(1.0)
@tf.function
def train(batch):
    weight.assign_sub(1e-6 * tf.reduce_mean(batch * weight))
"""

CUSTOM = DATA + "for epoch in range(2):\n    for number, batch in enumerate(data(30)):\n        train(batch)\n"

KERAS_ON_JAX = f"""{QUIET}
os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy
model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("sgd", "mse")
rows = numpy.ones((320, 4), "float32")
model.fit(rows, rows[:, :1], epochs=2, batch_size=32, verbose=0, validation_split=0.1)
"""

JAX = f"""{QUIET}
import functools, jax, jax.numpy as jnp, pickle
class Model:
    @functools.partial(jax.jit, static_argnums=0)
    def train(self, weight):
        return weight - 0.01 * jnp.tanh(weight @ weight)
model, weight = Model(), jax.jit(lambda key: jnp.ones((50, 50)))(0)
for step in range(40):
    weight = MARKED
assert Model.train.lower(model, weight).compile()(weight).shape == (50, 50)
assert jax.grad(jax.jit(lambda x: x * x))(3.0) == 6.0
assert isinstance(jax.jit(lambda x: x), jax.stages.Wrapped)
"""

DISTRIBUTED = f"""{QUIET}
import tensorflow as tf
cpu, two = tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
batches = strategy.experimental_distribute_dataset(tf.data.Dataset.range(32 * 30).batch(32))
@tf.function
def train(batch):
    return strategy.run(tf.reduce_sum, args=(batch,))
for batch in batches:
    train(batch)
"""


def run(folder: Path, python: str, collector: str, program: str, window: Window = WINDOW) -> Ran:
    return run_under(folder / "run", [collector], [python, "-c", program], window)


def steps_of(ran: Ran, collector: str) -> list[int]:
    """Return the numbers of the steps in the only recording."""
    harvest = ran.harvests[collector]
    assert harvest.problems == ()
    (source,) = harvest.sources
    steps = traceviz.open(source, tables=["steps"]).steps.collect()
    assert set(steps["marker"]) == {"train"}
    return sorted(steps["step"].to_list())


def test_keras_on_tensorflow_is_recorded_in_the_steps_asked_for(tmp_path: Path, oracle_python: str) -> None:
    ran = run_under(tmp_path / "run", ["tensorflow", "jax"], [oracle_python, str(KERAS)], Window(5, 10))
    assert ran.code == 0, ran.stderr
    assert steps_of(ran, "tensorflow") == STEPS  # over the end of an epoch, where Keras validates
    facts = ran.harvests["tensorflow"].facts
    assert (facts["steps_recorded"], facts["processes"][0]["source"]) == (10, "keras")
    assert facts["stop_cost_ns"] > 0
    assert facts["threads"] == {"intra_op": 0, "inter_op": 0}  # left to TensorFlow
    # Keras imports JAX and does not use it: its profiler would have it take the devices of TensorFlow.
    assert ran.harvests["jax"] == Harvest(facts={"processes": []})


def test_a_custom_loop_is_recorded_with_its_input_pipeline(tmp_path: Path, oracle_python: str) -> None:
    ran = run(tmp_path, oracle_python, "tensorflow", CUSTOM, Window(25, 10))
    assert ran.code == 0, ran.stderr
    assert steps_of(ran, "tensorflow") == list(range(25, 35))
    report = traceviz.report_on(ran.harvests["tensorflow"].sources[0])
    assert report.fact("steps", "count") == 10
    assert "input-bound" in report.verdict.code


def test_calls_of_a_function_are_steps_where_nothing_else_tells_of_them(tmp_path: Path, oracle_python: str) -> None:
    ran = run(tmp_path, oracle_python, "tensorflow", DATA + "for step in range(30): train(tf.ones(32) * step)\n")
    assert ran.code == 0, ran.stderr
    assert steps_of(ran, "tensorflow") == STEPS
    assert ran.harvests["tensorflow"].facts["processes"][0]["source"] == "tf_call"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -15), (signal.SIGINT, -2)])
def test_a_signal_in_the_window_leaves_the_steps_so_far(
    tmp_path: Path, oracle_python: str, number: int, code: int
) -> None:
    ran = run(tmp_path, oracle_python, "tensorflow", CUSTOM + f"        if number == 9: os.kill(os.getpid(), {number})")
    assert ran.code == code
    assert steps_of(ran, "tensorflow") == [5, 6, 7, 8]


def test_a_distributed_dataset_gives_the_steps(tmp_path: Path, oracle_python: str) -> None:
    ran = run(tmp_path, oracle_python, "tensorflow", DISTRIBUTED)
    assert ran.code == 0, ran.stderr
    assert steps_of(ran, "tensorflow") == STEPS


def test_a_program_that_profiles_itself_goes_on_undisturbed(tmp_path: Path, oracle_python: str) -> None:
    own = "        if number == 8: tf.profiler.experimental.start('own')\ntf.profiler.experimental.stop()\n"
    ran = run(tmp_path, oracle_python, "tensorflow", CUSTOM.replace("range(2)", "range(1)") + own)
    assert (ran.code, ran.problems) == (0, ["profiler-taken"])
    assert len(list((tmp_path / "run" / "own").rglob("*.xplane.pb"))) == 1
    assert len(ran.harvests["tensorflow"].sources) == 1


def test_keras_on_jax_is_recorded_by_jax_with_the_batches_it_takes(tmp_path: Path, oracle_python: str) -> None:
    ran = run(tmp_path, oracle_python, "jax", KERAS_ON_JAX)
    assert ran.code == 0, ran.stderr
    assert steps_of(ran, "jax") == STEPS
    assert batches_taken(ran) == 10 + 1  # one to validate with, after the epoch of 9
    assert ran.harvests["jax"].facts["threads"] == {"intra_op": 0}


def batches_taken(ran: Ran) -> int:
    ops = traceviz.open(ran.harvests["jax"].sources[0], tables=["host_ops"]).host_ops
    return ops.filter(pl.col("name").cast(pl.String) == "data loading").collect().height


RUNS_AHEAD = f"""{QUIET}
import jax, jax.numpy as jnp, tensorflow as tf
@jax.jit
def train(weight, batch):
    for _ in range(6):
        weight = jnp.tanh(weight @ weight) + batch
    return weight, weight.sum()
weight = jnp.ones((600, 600))
for batch in tf.data.Dataset.range(20).as_numpy_iterator():
    weight, loss = train(weight, batch)
"""


def test_steps_of_a_jax_loop_that_never_looks_at_a_result_hold_their_work(tmp_path: Path, oracle_python: str) -> None:
    ran = run(tmp_path, oracle_python, "jax", RUNS_AHEAD)
    assert ran.code == 0, ran.stderr
    assert steps_of(ran, "jax") == STEPS
    assert batches_taken(ran) == 10
    trace = traceviz.open(ran.harvests["jax"].sources[0], tables=["steps", "host_ops"])
    steps = trace.steps.collect()
    last = (steps["start_ns"] + steps["dur_ns"]).max()
    ops = trace.host_ops.filter(pl.col("name").cast(pl.String).str.contains("fusion|dot")).collect()
    assert ops.height >= 60
    # One step is in flight at most: the work of nine of the ten is done when the last ends.
    assert (ops["start_ns"] < last).mean() >= 0.9


def test_calls_of_a_jitted_method_are_steps(tmp_path: Path, oracle_python: str) -> None:
    ran = run(tmp_path, oracle_python, "jax", JAX.replace("MARKED", "model.train(weight)"))
    assert ran.code == 0, ran.stderr
    assert steps_of(ran, "jax") == STEPS
    assert ran.harvests["jax"].facts["processes"][0]["source"] == "jax_call"


def test_steps_that_a_jax_program_annotates_keep_their_numbers(tmp_path: Path, oracle_python: str) -> None:
    marked = "with jax.profiler.StepTraceAnnotation('train', step_num=step + 100): weight = model.train(weight)"
    ran = run(tmp_path, oracle_python, "jax", JAX.replace("weight = MARKED", marked))
    assert ran.code == 0, ran.stderr
    assert steps_of(ran, "jax") == list(range(105, 115))


def test_jax_is_recorded_by_time_once_it_has_chosen_its_devices(tmp_path: Path, oracle_python: str) -> None:
    configured = "import time; time.sleep(0.5); jax.config.update('jax_platforms', 'cpu')\nmodel, weight"
    program = JAX.replace("model, weight", configured, 1).replace(
        "MARKED", "(time.sleep(0.02), model.train(weight))[1]"
    )
    ran = run(tmp_path, oracle_python, "jax", program, Window(0, None, delay_s=0.0, duration_s=60.0))
    assert ran.code == 0, ran.stderr
    steps = steps_of(ran, "jax")
    assert steps == list(range(steps[0], steps[-1] + 1))
    assert steps[0] < 39 <= steps[-1]
