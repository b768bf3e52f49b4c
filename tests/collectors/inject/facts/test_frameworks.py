"""The framework in use, its number of threads, the tracer of the device, and work in flight."""

import json
import runpy
import sys
import threading
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.collectors.inject.bench import HOOKS


@pytest.fixture(autouse=True)
def _without_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("jax", "keras.src.backend.config", "tensorflow", "tensorflow.python.eager.context", "torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch):
    """Makes a module that the program has imported."""

    def imported(name: str, **contents: object) -> ModuleType:
        module = ModuleType(name)
        module.__spec__ = SimpleNamespace(_initializing=False)  # type: ignore[assignment]
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return imported


@pytest.mark.parametrize(("tracer", "traced"), [(None, [1, 2]), ("torch", [1, 2]), ("nsys", [1]), ("jax", [1])])
def test_torch_traces_the_device_unless_another_claims_it(inject, tracer: str | None, traced: list[int]) -> None:
    settings = inject.config.Settings("raw", ("torch",), device_tracer=tracer)
    activity = SimpleNamespace(CPU=1, CUDA=2, XPU=3)
    module = SimpleNamespace(ProfilerActivity=activity, supported_activities=lambda: {1, 2})
    assert inject.torch_profiler.TorchProfiler(settings, module)._activities() == traced


def test_jax_is_at_work_once_it_has_devices_or_makes_the_steps(inject, put) -> None:
    backends: list[str] = []
    assert not inject.frameworks.is_at_work("jax")
    put("jax._src.xla_bridge", backends_are_initialized=lambda: bool(backends))
    inject.steps.CLOCK.begin("tf_iterator")
    assert not inject.frameworks.is_at_work("jax")
    backends.append("cpu")
    assert inject.frameworks.is_at_work("jax")
    backends.clear()
    inject.steps.CLOCK.begin("jax_step")
    assert inject.frameworks.is_at_work("jax")


def test_tensorflow_is_at_work_once_it_executed_something_or_builds_graphs(inject, put) -> None:
    state = SimpleNamespace(_initialized=False)
    context = put("tensorflow.python.eager.context", EAGER_MODE=1, default_execution_mode=1, context_safe=lambda: state)
    assert not inject.frameworks.is_at_work("tensorflow")
    state._initialized = True
    assert inject.frameworks.is_at_work("tensorflow")
    state._initialized, context.default_execution_mode = False, 0
    assert inject.frameworks.is_at_work("tensorflow")


def test_torch_below_another_frameworks_steps_is_at_work_once_it_was_used(inject, put) -> None:
    module = put("torch")
    assert inject.frameworks.is_at_work("torch")
    module.__spec__._initializing = True
    assert not inject.frameworks.is_at_work("torch")
    module.__spec__._initializing = False
    inject.steps.CLOCK.begin("tf_iterator")
    assert not inject.frameworks.is_at_work("torch")
    inject.torch_steps.LOOP.optimizer_begins()
    assert inject.frameworks.is_at_work("torch")


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_keras_says_which_framework_makes_its_steps(inject, put, backend: str) -> None:
    put("keras.src.backend.config", backend=lambda: backend)
    assert inject.frameworks.driving() is None
    inject.steps.CLOCK.begin("keras")
    assert inject.frameworks.driving() == backend


def test_threads_of_torch_are_those_it_uses(inject, put) -> None:
    put("torch", get_num_threads=lambda: 6, get_num_interop_threads=lambda: 3)
    assert inject.frameworks.threads("torch") == {"intra_op": 6, "inter_op": 3}


def test_threads_of_tensorflow_are_asked_once_it_has_its_devices(inject, put) -> None:
    state = SimpleNamespace(_initialized=False)
    put("tensorflow.python.eager.context", EAGER_MODE=1, default_execution_mode=1, context_safe=lambda: state)
    threading = SimpleNamespace(get_intra_op_parallelism_threads=lambda: 8, get_inter_op_parallelism_threads=lambda: 2)
    put("tensorflow", config=SimpleNamespace(threading=threading))
    assert inject.frameworks.threads("tensorflow") is None
    state._initialized = True
    assert inject.frameworks.threads("tensorflow") == {"intra_op": 8, "inter_op": 2}


@pytest.mark.parametrize(
    ("environment", "threads"),
    [
        ({}, 0),
        ({"NPROC": "7"}, 7),
        ({"NPROC": "many"}, 0),
        ({"NPROC": "7", "XLA_FLAGS": "--xla_foo=1 --xla_cpu_multi_thread_eigen=false"}, 1),
    ],
)
def test_threads_of_jax_are_those_that_its_environment_gives(
    inject, put, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], threads: int
) -> None:
    put("jax")
    for name in ("NPROC", "XLA_FLAGS"):
        monkeypatch.setenv(name, environment.get(name, ""))
    assert inject.frameworks.threads("jax") == {"intra_op": threads}


@pytest.mark.parametrize("framework", [None, "jax", "nvtx"])
def test_threads_of_what_is_not_there_are_unknown(inject, framework: str | None) -> None:
    assert inject.frameworks.threads(framework) is None


class Array:
    """An array of JAX: its work is done after the first wait for it."""

    def __init__(self, number: int, waited: list[int], size: int = 1) -> None:
        self.number, self.size, self._waited, self.gone = number, size, waited, False

    def is_deleted(self) -> bool:
        return self.gone

    def block_until_ready(self) -> None:
        self._waited.append(self.number)


def in_flight(inject, put) -> object:
    put("jax", tree_util=SimpleNamespace(tree_leaves=list))
    return inject.jax_calls.InFlight()


def test_a_call_waits_for_the_smallest_result_of_the_call_before_it(inject, put) -> None:
    waited: list[int] = []
    flight = in_flight(inject, put)
    for number in range(4):
        flight.dispatched((Array(10 + number, waited, size=9), Array(number, waited), "no array"))
    assert waited == [0, 0, 1, 2]


def test_a_call_waits_for_its_own_result_where_it_was_given_the_earlier_one(inject, put) -> None:
    waited: list[int] = []
    flight = in_flight(inject, put)
    arrays = [Array(number, waited) for number in range(3)]
    for earlier, array in zip([None, *arrays], arrays, strict=False):
        if earlier is not None:
            earlier.gone = True
        flight.dispatched((array,))
    assert waited == [0, 1, 2]


def test_an_error_of_the_device_is_left_to_the_program(inject, put, capsys: pytest.CaptureFixture[str]) -> None:
    broken = Array(0, [])
    broken.block_until_ready = lambda: 1 / 0  # type: ignore[method-assign]
    in_flight(inject, put).dispatched((broken,))
    assert capsys.readouterr().err.count("ZeroDivisionError") == 1


class Compiled:
    """The result of jax.jit and jax.pmap."""

    def __init__(self, function) -> None:
        self._function = function

    def __call__(self, *arguments):
        return self._function(*arguments)

    def lower(self) -> str:
        return "lowered"


def pmap(fun=None, axis_name=""):
    return Compiled(fun) if fun is not None else partial(pmap, axis_name=axis_name)


@pytest.mark.parametrize("how", ["plainly", "by name", "with options"])
def test_calls_of_a_function_mapped_over_devices_are_steps(inject, how: str) -> None:
    module = SimpleNamespace(pmap=pmap)
    inject.jax_calls._hook_compilers(module)
    make = {
        "plainly": module.pmap,
        "by name": lambda function: module.pmap(fun=function, axis_name="i"),
        "with options": module.pmap(axis_name="i"),
    }
    mapped = make[how](lambda x: x + 1)
    assert [mapped(x) for x in range(4)] == [1, 2, 3, 4]
    assert (mapped.lower(), inject.steps.CLOCK.source, inject.steps.CLOCK.steps_seen) == ("lowered", "jax_call", 4)


def test_batches_that_another_thread_takes_ahead_end_no_step(inject) -> None:
    loop, clock = inject.torch_steps.LOOP, inject.steps.CLOCK
    loader, optimizer = inject.training_loop.Token(), inject.training_loop.Token()
    iterator = SimpleNamespace(_traceviz_loader=loader)

    def take_all() -> None:
        loop.loader_opens(loader)
        for _ in range(4):
            loop.batch_begins(iterator)
            loop.batch_ends(iterator)

    def train() -> None:
        loop.optimizer_begins()
        loop.optimizer_ends(optimizer, done=True)

    in_thread(take_all)
    train()
    assert (clock.steps_seen, clock.step) == (1, 1)
    in_thread(lambda: loop.batches_end(iterator))
    assert clock.step == 1  # three batches are still to be trained on
    loop._waiting_batches = 0
    in_thread(lambda: loop.batches_end(iterator))
    assert clock.step == 1  # nor does the thread know whether the last one is being trained on
    train()
    assert clock.steps_seen == 2


def in_thread(function) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_part_directly_within_itself_is_one_part(inject) -> None:
    heard: list[str] = []
    parts = inject.parts.Parts()
    parts.listen(heard.append, lambda name: heard.append("/" + name), heard.append, heard.clear)
    inject.process.claim()
    with parts.part("data loading"), parts.part("data loading"):
        heard.append("taking")
    with parts.part("optimizer"), parts.part("compute"):
        pass
    assert heard[:3] == ["data loading", "taking", "/data loading"]
    assert heard[3:] == ["optimizer", "compute", "/compute", "/optimizer"]


def test_a_python_too_old_for_the_hooks_still_runs_the_sitecustomize_they_shadow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.shadowed = 36\n")
    ours = Path(HOOKS) / "sitecustomize.py"
    assert "__future__" not in ours.read_text()  # Python 3.6 lacks newer features of this module
    monkeypatch.setattr(sys, "path", [HOOKS, str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "version_info", (3, 6, 15))
    monkeypatch.delitem(sys.modules, "sitecustomize", raising=False)
    monkeypatch.setattr(sys, "shadowed", 0, raising=False)
    runpy.run_path(str(ours))
    assert (sys.shadowed, capsys.readouterr().err) == (36, "")


def test_a_window_in_time_does_not_open_within_an_import_of_torch(inject, put) -> None:
    started: list[str] = []
    half = put("torch._half_imported")
    half.__spec__._initializing = True
    window = inject.config.Window(0, None, 0.0, 1.0)
    settings = inject.config.Settings("raw", ("torch",), window=window)
    profile = SimpleNamespace(start=lambda: started.append("started"))
    module = SimpleNamespace(
        ProfilerActivity=SimpleNamespace(CPU=1, CUDA=2, XPU=3),
        supported_activities=lambda: {1},
        profile=lambda **_: profile,
    )
    profiler = inject.torch_profiler.TorchProfiler(settings, module)
    with pytest.raises(inject.recorder.NotYetError):
        profiler.start("folder")
    half.__spec__._initializing = False
    profiler.start("folder")
    assert started == ["started"]


def test_a_range_that_no_step_ends_is_no_recorded_step(inject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pushed: list[str] = []
    domain = SimpleNamespace(push=pushed.append, pop=lambda: None, prepare=lambda _: None)
    monkeypatch.setattr(inject.nvtx_ranges.nvtx_client, "open_domain", lambda _: domain)
    ranges = inject.nvtx_ranges.Ranges(str(tmp_path))
    clock = inject.steps.CLOCK
    clock.listen(ranges.step_begins, ranges.step_ends)
    clock.begin("jax_call")
    for _ in range(3):
        clock.boundary("jax_call")
    ranges._at_end("exit")
    (status,) = [json.loads(path.read_text()) for path in tmp_path.glob("*/status.json")]
    assert pushed == ["step 0", "step 1", "step 2", "step 3"]
    assert (status["steps_recorded"], status["emitted"]) == (3, 4)


@pytest.mark.parametrize(
    ("cuda", "hip", "is_initialized", "seen"),
    [
        (None, None, False, "cpu-build"),
        ("12.8", None, False, "not-used"),
        ("12.8", None, True, "used"),
        (None, "6.2", True, "used"),
    ],
)
def test_torch_is_not_asked_to_look_for_gpus(inject, put, cuda, hip, is_initialized, seen) -> None:  # noqa: PLR0917
    version = SimpleNamespace(cuda=cuda, hip=hip)
    put("torch", version=version, cuda=SimpleNamespace(is_initialized=lambda: is_initialized))
    assert inject.frameworks.accelerators("torch") == seen


@pytest.mark.parametrize(("kinds", "seen"), [(["CPU"], "none-found"), (["CPU", "GPU"], "used")])
def test_tensorflow_is_asked_for_its_devices_once_it_has_chosen_them(inject, put, kinds, seen) -> None:
    state = SimpleNamespace(_initialized=False)
    put("tensorflow.python.eager.context", EAGER_MODE=1, default_execution_mode=0, context_safe=lambda: state)
    devices = [SimpleNamespace(device_type=kind) for kind in kinds]
    put("tensorflow", config=SimpleNamespace(list_logical_devices=lambda: devices))
    assert inject.frameworks.accelerators("tensorflow") is None
    state._initialized = True
    assert inject.frameworks.accelerators("tensorflow") == seen


@pytest.mark.parametrize(("backend", "seen"), [("cpu", "none-found"), ("gpu", "used"), ("tpu", "used")])
def test_jax_is_asked_for_its_devices_once_it_has_chosen_them(inject, put, backend, seen) -> None:
    put("jax", default_backend=lambda: backend)
    assert inject.frameworks.accelerators("jax") is None
    put("jax._src.xla_bridge", backends_are_initialized=lambda: True)
    assert inject.frameworks.accelerators("jax") == seen
    assert inject.frameworks.accelerators("numpy") is None
