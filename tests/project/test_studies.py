"""The five studies: their files, what they run, and the page whose commands read their runs."""

from __future__ import annotations

import importlib.util
import pickle
import re
import shlex
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.conftest import REPOSITORY
from traceviz.cli.compare import compare
from traceviz.sweep.file import read_sweep
from traceviz.sweep.orders import Sweep, plan

FILES = sorted((REPOSITORY / "examples" / "studies").glob("*.toml"))
PAGE = REPOSITORY / "docs" / "studies.md"
SETTINGS = {"1_keras": 12, "2_frameworks": 28, "3_accelerators": 9, "4_threads": 19, "5_projects": 9}
PARAMETERS = {"alexnet": 20_126_538, "mobilenet": 2_236_682, "resnet50": 23_528_522, "vgg16": 33_638_218}
"""MobileNet v2 and ResNet-50 as published, less 990 of their 1000 classes; the others have smaller dense layers."""


def loaded(folder: str, name: str) -> ModuleType:
    """Return a module of a folder that is no package."""
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", REPOSITORY / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def images() -> ModuleType:
    return loaded("examples", "images")


@pytest.fixture(scope="module")
def models() -> ModuleType:
    return loaded("examples", "image_models")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded("scripts", "studies")


def planned(file: Path) -> Sweep:
    return plan(read_sweep(file), file.stem, REPOSITORY, seed=1)


def test_there_are_five_files_with_so_many_settings():
    assert {file.stem: len(planned(file).settings) for file in FILES} == SETTINGS


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_commands_use_programs_and_switches_that_there_are(file):
    orders = planned(file).orders
    assert len({order.folder for order in orders}) == len(orders) >= SETTINGS[file.stem]
    for order in orders:
        words = list(order.task.command)
        script = REPOSITORY / next(word for word in words if word.endswith(".py"))
        text = script.read_text() + ('"--seed"' if script.name == "projects.py" else "")  # it hands that on
        assert [word for word in words if word.startswith("--") and f'"{word}"' not in text] == []


def test_projects_have_the_stages_of_their_file_and_switches_that_there_are():
    projects = loaded("examples", "projects").PROJECTS
    stages = {(project, stage) for project, (_, stages) in projects.items() for stage in stages}
    sweep = planned(REPOSITORY / "examples/studies/5_projects.toml")
    assert {(setting.tags["project"], setting.tags["stage"]) for setting in sweep.settings} == stages
    assert len(stages) == 9
    for program, switches in projects.values():
        name, *common = shlex.split(program)
        text = (REPOSITORY / "examples" / name).read_text()
        words = [*common, *shlex.split(" ".join(switches.values())), "--seed"]
        assert [word for word in words if word.startswith("--") and f'"{word}"' not in text] == []


def page_commands() -> list[list[str]]:
    found = re.findall(r"^\$ (traceviz compare .*)$", PAGE.read_text().replace("\\\n", ""), re.MULTILINE)
    return [shlex.split(command)[2:] for command in found]


def test_commands_of_the_page_find_runs_and_ask_for_their_tags():
    commands = page_commands()
    assert len(commands) >= 10
    sweeps = {file.stem: planned(file) for file in FILES}
    for words in commands:
        context = compare.make_context("compare", list(words))
        found = []
        for side in map(str, context.params["sides"]):
            study, _, pattern = side.removeprefix("traceviz-runs/").partition("/")
            names = [order.folder.name for order in sweeps[study].orders]
            matched = [name for name in names if fnmatchcase(name, pattern or "*")]
            assert matched, side
            found += matched
        assert len(found) >= 2, words
        how = set(words[words.index("--by") + 1].split(",")) if "--by" in words else set()
        assert how <= {tag.partition("=")[0] for tag in found[0].split("+")}, words


def test_the_page_names_every_file():
    text = PAGE.read_text()
    assert [file.stem for file in FILES if f"traceviz-runs/{file.stem}" not in text] == []


def test_a_command_of_a_page_gets_what_it_prints_now(script, monkeypatch):
    monkeypatch.setattr(script, "printed", lambda command: f"<{len(command)}>\n")
    monkeypatch.setattr(script, "is_recorded", lambda command: "runs/b" not in command)
    page = "```console\n$ traceviz compare traceviz-runs/a \\\n    --by x\nold\n$ other\nkept\n```\n$ no block\n"
    new = "```console\n$ traceviz compare traceviz-runs/a \\\n    --by x\n<45>\n$ other\nkept\n```\n$ no block\n"
    assert script.filled(page) == new
    unrecorded = page.replace("runs/a", "runs/b")
    assert script.filled(unrecorded) == unrecorded
    assert script.filled(new) == new


def test_models_have_as_many_parameters_as_published(models):
    found = {name: models.parameters(build(10)) for name, build in models.MODELS.items()}
    assert found == PARAMETERS


def test_images_that_are_made_differ_by_class_and_are_held_out_once(images):
    training, held = images.load("made", 100, held_out=40)
    assert training.pixels.shape == (100, 32, 32, 3)
    assert len(held) == 40
    assert set(training.labels) == set(range(10))
    rows = {image.tobytes() for image in (*training.pixels, *held.pixels)}
    assert len(rows) == 140
    again, _ = images.load("made", 100, held_out=40)
    assert (again.pixels == training.pixels).all()


def test_both_versions_of_cifar10_are_read_alike(images, tmp_path):
    random = np.random.default_rng(1)
    planes, labels = random.integers(0, 256, (30, 3072), np.uint8), random.integers(0, 10, 30, np.uint8)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "data_batch_1.bin").write_bytes(np.column_stack([labels, planes]).tobytes())
    (tmp_path / "python").mkdir()
    content = {b"labels": labels.tolist(), b"data": planes}
    (tmp_path / "python" / "data_batch_1").write_bytes(pickle.dumps(content))
    one, _ = images.load(str(tmp_path / "c"), 20, held_out=10)
    other, held = images.load(str(tmp_path / "python"), 20, held_out=10)
    assert (one.pixels == other.pixels).all()
    assert (one.labels == other.labels).all()
    assert one.pixels.shape == (20, 32, 32, 3)
    assert {tuple(image[0, 0]) for image in (*other.pixels, *held.pixels)} == {tuple(row[::1024]) for row in planes}


def test_a_folder_without_images_is_refused_in_words(images, tmp_path):
    with pytest.raises(SystemExit, match=r"has no files of CIFAR-10 \(data_batch_1\.bin or data_batch_1\)"):
        images.load(str(tmp_path), 20)


def test_an_image_keeps_its_mean_where_it_is_resized(images):
    ramp = np.repeat(np.arange(0, 256, 8, dtype=np.uint8)[None, None, :, None], 32, axis=1).repeat(3, axis=3)
    for side in (16, 48, 96):
        large = images.resized(ramp, side)
        assert large.shape == (1, side, side, 3)
        assert abs(float(large.mean()) - float(ramp.mean())) < 0.6
        assert (np.diff(large[0, 0, :, 0].astype(int)) >= 0).all()
