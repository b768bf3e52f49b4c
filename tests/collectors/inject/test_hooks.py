"""Getting into a program: the import hooks, the sitecustomize that ours shadows, the environment."""

import ast
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module, reload
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.collectors.inject.bench import HOOKS, LOOP, Bench
from traceviz.collectors.base import Plan, Window
from traceviz.collectors.frameworks.injection import injection_environment, injection_settings
from traceviz.collectors.frameworks.profilers import JaxCollector, TensorFlowCollector

WINDOW = Window(first_step=5, steps=10)
SOURCES = sorted(Path(HOOKS).rglob("*.py"))


@pytest.fixture
def hooks(hook: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """The module with the import hooks, and ``tmp_path`` to import from; what it changed is undone."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield hook("hooks")
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_hook_runs_once_the_module_has_been_executed(hooks: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "watched_one.py").write_text("value = 41\n")
    seen: list[int] = []
    hooks.when_imported("watched_one", lambda module: seen.append(module.value))
    module = import_module("watched_one")
    assert seen == [41]
    assert type(module.__spec__.loader).__name__ == type(module.__loader__).__name__ == "SourceFileLoader"


def test_a_hook_runs_at_once_for_a_module_that_is_there_and_again_at_a_reload(
    hooks: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "watched_two.py").write_text("value = 1\n")
    module = import_module("watched_two")
    seen: list[int] = []
    hooks.when_imported("watched_two", lambda module: seen.append(module.value))
    assert seen == [1]
    (tmp_path / "watched_two.py").write_text("value = 20000\n")
    reload(module)
    assert seen == [1, 20000]


def test_submodules_and_modules_in_archives_are_hooked(hooks: ModuleType, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("watched_zip/__init__.py", "")
        archive.writestr("watched_zip/inner.py", "value = 3\n")
        archive.writestr("watched_zip/other.py", "value = 4\n")
    sys.path.insert(0, str(tmp_path / "packed.zip"))
    seen: list[str] = []
    hooks.when_imported("watched_zip.inner", lambda module: seen.append(module.__name__))
    import_module("watched_zip.other")
    import_module("watched_zip.inner")
    assert seen == ["watched_zip.inner"]


def test_a_module_that_fails_fails_as_it_would_and_its_hooks_do_not_run(hooks: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "watched_bad.py").write_text("raise OSError(5, 'broken')\n")
    seen: list[ModuleType] = []
    hooks.when_imported("watched_bad", seen.append)
    with pytest.raises(OSError, match="broken"):
        import_module("watched_bad")
    assert (len(seen), "watched_bad" in sys.modules) == (0, False)


def test_a_missing_module_stays_missing(hooks: ModuleType) -> None:
    hooks.when_imported("watched_nowhere", print)
    with pytest.raises(ModuleNotFoundError) as raised:
        import_module("watched_nowhere")
    assert raised.value.name == "watched_nowhere"


def test_a_hook_that_fails_is_said_in_one_line(
    hooks: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "watched_three.py").write_text("value = 3\n")
    hooks.when_imported("watched_three", lambda module: module.absent)
    assert import_module("watched_three").value == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_replaced_is_replaced_once(hooks: ModuleType) -> None:
    module = ModuleType("made")
    module.double = lambda number: 2 * number  # type: ignore[attr-defined]
    for _ in range(2):
        hooks.replace(module, "double", lambda original: lambda number: original(number) + 1)
    hooks.replace(module, "absent", lambda original: original)
    assert module.double(5) == 11


def test_the_sitecustomize_that_ours_shadows_runs_too(bench: Bench) -> None:
    (bench.packages / "sitecustomize.py").write_text("import builtins, sys\nbuiltins.seen = __name__, __file__\n")
    left = bench.run("-c", "import sys; print(*seen, sys.modules['sitecustomize'].__file__)", window=WINDOW)
    path = str(bench.packages / "sitecustomize.py")
    assert left.out.split() == ["sitecustomize", path, path]


def test_an_error_in_the_shadowed_sitecustomize_is_told_as_python_tells_it(bench: Bench) -> None:
    (bench.packages / "sitecustomize.py").write_text("1 / 0\n")
    left = bench.run(bench.script(LOOP, 30), window=WINDOW)
    assert left.err.splitlines() == [
        "Error in sitecustomize; set PYTHONVERBOSE for traceback:",
        "ZeroDivisionError: division by zero",
    ]
    assert left.steps == list(range(5, 15))


@pytest.mark.parametrize("settings", ["", "{", '{"collectors": 3}', '{"window": {"first_step": "x"}}'])
def test_damaged_settings_cost_one_line_and_not_the_program(bench: Bench, settings: str) -> None:
    plan = bench.run("-c", "print(1)", window=WINDOW).plan
    (plan.folder / "inject.json").write_text(settings)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(bench.packages)}
    environment |= injection_environment(plan, environment)
    program = [sys.executable, "-c", "import tensorflow; print(5)"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "5\n")
    assert done.stderr.startswith("traceviz: a part of the recording is off: ")
    assert done.stderr.count("\n") == 1


def test_a_run_folder_that_vanishes_costs_lines_and_not_the_program(bench: Bench) -> None:
    vanish = "import shutil; shutil.rmtree('run'); open('run', 'w').close()\n"
    left = bench.run(bench.script(vanish + LOOP + "print(6)", 30), window=WINDOW)
    assert (left.code, left.out) == (0, "6\n")
    assert "Traceback" not in left.err


def test_the_program_finds_its_own_path_behind_ours(tmp_path: Path) -> None:
    plan = Plan(tmp_path, ("python",), ("tensorflow",))
    once = injection_environment(plan, {"PYTHONPATH": "/a::/b"})
    assert once["PYTHONPATH"] == f"{HOOKS}{os.pathsep}/a::/b"
    assert injection_environment(plan, {"PYTHONPATH": once["PYTHONPATH"]})["PYTHONPATH"] == once["PYTHONPATH"]
    assert injection_environment(plan, {})["PYTHONPATH"] == HOOKS
    assert injection_environment(plan, {})["TRACEVIZ_INJECT"] == str(tmp_path / "inject.json")


def test_the_settings_name_only_what_records_inside_the_program(tmp_path: Path) -> None:
    plan = Plan(tmp_path, ("python",), ("jax", "nsys", "resources"), device_tracer="nsys", options={"jax": {"a": 1}})
    settings = json.loads(json.dumps(injection_settings(plan)))
    assert settings["collectors"] == ["jax"]
    assert str(tmp_path) not in json.dumps(settings)  # the run folder may be shared, and its path is private
    assert settings["window"] == {"first_step": 10, "steps": 20, "delay_s": None, "duration_s": None}
    assert (settings["device_tracer"], settings["options"]) == ("nsys", {"jax": {"a": 1}})


@pytest.mark.parametrize("collector", [TensorFlowCollector(), JaxCollector()])
def test_a_capture_without_a_byte_is_told_to_be_too_large(
    tmp_path: Path, collector: TensorFlowCollector | JaxCollector
) -> None:
    plan = Plan(tmp_path, ("python",), (collector.name,))
    empty = plan.raw(collector.name) / "pid7" / "plugins" / "profile" / "now" / "host.xplane.pb"
    empty.parent.mkdir(parents=True)
    empty.touch()
    (plan.raw(collector.name) / "pid7" / "status.json").write_text('{"pid": 7, "state": "saved", "steps_recorded": 20}')
    harvest = collector.harvest(plan)
    assert harvest.sources == ()
    assert [problem.code for problem in harvest.problems] == ["capture-too-large"]
    assert harvest.facts["steps_recorded"] == 20


def test_a_collector_with_nothing_left_at_all_does_not_raise(tmp_path: Path) -> None:
    harvest = JaxCollector().harvest(Plan(tmp_path / "gone", ("python",), ("jax",)))
    assert [problem.code for problem in harvest.problems] == ["not-injected"]
    assert harvest.facts == {"processes": []}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_what_is_injected_is_python_3_9_and_imports_only_what_comes_with_python(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }
    assert imported - sys.stdlib_module_names - {"traceviz_inject"} == set()


def test_a_python_that_never_imports_a_framework_loads_little(bench: Bench) -> None:
    tell = "import sys; print(*sorted(set(sys.modules) - {name for name in sys.modules if name.startswith('_')}))"
    loaded = set(bench.run("-c", tell, window=WINDOW).out.split())
    ours = {name for name in loaded if name.startswith("traceviz_inject")}
    assert ours == {"traceviz_inject", *(f"traceviz_inject.{name}" for name in ("hooks", "process", "status"))}
    assert loaded & {"json", "re", "shutil", "signal", "threading", "typing"} == set()
