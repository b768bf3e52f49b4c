"""The recipe of docs/studies.md: examples/study.sh goes through settings fairly, and the page shows the files."""

import os
import re
import shlex
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from traceviz.cli.compare import compare

STUDY = REPOSITORY / "examples" / "study.sh"
SETTINGS = sorted((REPOSITORY / "examples" / "studies").glob("*.txt"))
PAGE = REPOSITORY / "docs" / "studies.md"
SIX = "".join(f"approach=a{number},batch=8  env X={number} python train.py\n" for number in range(6))
TRACEVIZ = """#!/bin/sh
echo "$*" >> "$LOG"
while [ "$1" != -o ]; do shift; done
mkdir -p "$2"
[ "$(wc -l < "$LOG")" != "$FAIL_AT" ] || exit 3
echo '"status": "finished",' > "$2/manifest.json"
"""
"""Stands in for the real command: writes down how it is called and leaves a run folder; fails in the call FAIL_AT."""


@pytest.fixture
def study(tmp_path):
    """Runs the recipe over six settings, and gives its exit code and all calls of `traceviz` until now."""
    program, settings, log = tmp_path / "bin" / "traceviz", tmp_path / "settings.txt", tmp_path / "log"
    program.parent.mkdir()
    program.write_text(TRACEVIZ)
    program.chmod(0o755)
    settings.write_text(f"# a comment\n\n{SIX}")
    log.touch()

    def run(*options: str, fail_at: int = 0) -> tuple[int, list[str]]:
        path = f"{program.parent}:{os.environ['PATH']}"
        variables = {**os.environ, "PATH": path, "LOG": str(log), "FAIL_AT": str(fail_at)}
        done = subprocess.run([STUDY, settings, tmp_path / "runs", *options], env=variables, check=False, timeout=60)
        return done.returncode, log.read_text().splitlines()

    return run


def setting(call: str) -> str:
    return re.findall("--tag approach=(\\w+)", call)[0]


def finished(folder: Path) -> set[str]:
    return {manifest.parent.name for manifest in folder.glob("runs/*/manifest.json")}


def test_every_repeat_goes_through_all_settings_in_an_order_of_its_own(study, tmp_path):
    code, calls = study("8")
    assert code == 0
    rounds = [tuple(map(setting, calls[start : start + 6])) for start in range(0, 48, 6)]
    assert len(calls) == 48
    assert {tuple(sorted(names)) for names in rounds} == {tuple(f"a{number}" for number in range(6))}
    assert len(set(rounds)) > 1  # alike by chance: once in 720 ** 7 times
    assert finished(tmp_path) == {f"approach=a{n}+batch=8+{repeat}" for n in range(6) for repeat in range(1, 9)}


def test_a_run_has_its_tags_its_number_its_options_and_its_command(study, tmp_path):
    _, calls = study("1", "--with", "torch")
    for number, call in enumerate(sorted(calls, key=setting)):
        folder = f"{tmp_path}/runs/approach=a{number}+batch=8+1"
        options = f"-o {folder} --with torch --tag repeat=1 --tag approach=a{number} --tag batch=8"
        assert call == f"collect --no-report --force {options} -- env X={number} python train.py"
    assert len(calls) == 6


def test_a_study_that_was_interrupted_goes_on_without_repeating_what_it_has(study, tmp_path):
    code, calls = study("2", fail_at=4)
    assert (code, len(calls), len(finished(tmp_path))) == (1, 4, 3)
    code, calls = study("2")
    assert (code, len(calls), len(finished(tmp_path))) == (0, 13, 12)
    assert set(Counter(re.findall(r"repeat=\d --tag approach=\w+", "\n".join(calls))).values()) == {1, 2}
    assert study("2") == (0, calls)


@pytest.mark.parametrize("words", [(), ("settings.txt",), ("settings.txt", "runs", "--with", "torch")])
def test_a_word_that_is_missing_is_asked_for(words, tmp_path):
    done = subprocess.run([STUDY, *words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr == f"usage: {STUDY} SETTINGS RUNS [REPEATS [OPTION OF traceviz collect]...]\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", SETTINGS, ids=lambda file: file.stem)
def test_settings_are_distinct_and_use_switches_that_the_examples_have(file):
    lines = [line.split(None, 1) for line in file.read_text().splitlines() if line]
    assert len({tags for tags, _ in lines}) == len(lines) >= 6
    assert len({command for _, command in lines}) == len(lines)
    keys = {tuple(tag.partition("=")[0] for tag in tags.split(",")) for tags, _ in lines}
    assert len(keys) == 1
    for tags, command in lines:
        words = shlex.split(command)
        script = REPOSITORY / next(word for word in words if word.endswith(".py"))
        missing = [word for word in words if word.startswith("--") and f'"{word}"' not in script.read_text()]
        assert missing == []
        batch = words[words.index("--batch-size") + 1] if "--batch-size" in words else "32"
        assert f"batch={batch}" in tags.split(",")


def test_the_page_shows_the_recipe_and_the_settings_as_they_are():
    text = PAGE.read_text()
    code = [line for line in STUDY.read_text().splitlines(keepends=True) if not line.startswith("#")]
    assert "".join(code).partition("set -uo pipefail\n")[2] in text
    assert [file.name for file in SETTINGS if file.read_text() not in text] == []


def test_commands_of_the_page_have_options_that_exist_and_ask_for_tags_that_are_given():
    commands = re.findall(r"(traceviz compare .*?)(?:;|$)", PAGE.read_text().replace("\\\n", ""), re.MULTILINE)
    assert len(commands) >= 4
    given = set(re.findall(r"(\w+)=", "".join(re.findall("```text\n(.*?)```", PAGE.read_text(), re.DOTALL))))
    for command in commands:
        context = compare.make_context("compare", shlex.split(command)[2:])
        tags = {tag for name in ("by", "per") for tag in (context.params[name] or "").split(",") if tag}
        assert tags <= given | {"stage"}, command  # tables of before and after are told of in a sentence
