"""Every command in README.md and docs/ is one that works.

Outputs that ``scripts/generate_docs.py`` pastes are compared by ``test_docs.py``. The other commands run here, in a
folder where the names that pages use stand for samples. Commands that record, need a network or
tagged runs are parsed only.
"""

import importlib.util
import re
import shlex
import zipfile
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click
import pytest

from scripts.generate_docs import DOCS, PASTED, README, shows_samples
from tests.conftest import REPOSITORY
from tests.support.command import run
from traceviz.cli.main import main

pytestmark = pytest.mark.process

PAGES = (README, *sorted(DOCS.rglob("*.md")))
BLOCK = re.compile(r"^ *```(console|sh|bash)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(traceviz [^`\n]+)`")
SAMPLES = REPOSITORY / "sample_traces"
KINETO, SYNTHETIC, XPLANE = SAMPLES / "kineto", SAMPLES / "synthetic", SAMPLES / "xplane"
SLOW, REPAIRED = KINETO / "slow.pt.trace.json.gz", KINETO / "repaired.pt.trace.json.gz"
NSYS = SYNTHETIC / "input_bound.sqlite"
NAMES = {
    **dict.fromkeys(("slow", "before", "base", "baseline", "run", "run1", "run2", "run3"), SLOW),
    **dict.fromkeys(("repaired", "after", "prefetch", "mixed-precision", "run4", "run5", "run6"), REPAIRED),
    **dict.fromkeys(("slow.pt.trace.json.gz", "before.pt.trace.json.gz", "TRACE", "FILE", "rank0.json.gz"), SLOW),
    **dict.fromkeys(("repaired.pt.trace.json.gz", "after.pt.trace.json.gz", "rank1.json.gz"), REPAIRED),
    **dict.fromkeys(("trace.nsys-rep", "run.nsys-rep", "rank0.nsys-rep", "base.sqlite", "run.sqlite"), NSYS),
    "rank0.pt.trace.json.gz": KINETO / "two_ranks" / "rank0.pt.trace.json.gz",
    "rank1.pt.trace.json.gz": KINETO / "two_ranks" / "rank1.pt.trace.json.gz",
    **dict.fromkeys(("traces", "FOLDER", "job"), SYNTHETIC / "torch_four_ranks_straggler"),
    "runs/rank0": KINETO / "two_ranks" / "rank0.pt.trace.json.gz",
    "runs/rank1": KINETO / "two_ranks" / "rank1.pt.trace.json.gz",
    "logs": XPLANE / "keras_tensorboard",
    "sample_traces": SAMPLES,
}
"""Samples by the names that pages use."""
OF_PAGE = {
    "training/pytorch.md": {"run": SYNTHETIC / "torch_healthy.pt.trace.json.gz"},
    "training/tensorflow.md": {"slow": XPLANE / "slow_map.xplane.pb.gz"},
    "training/jax.md": {"slow": XPLANE / "jax_annotated.xplane.pb.gz"},
}
PARSED = re.compile(
    r" --(?:by|curve|scaling|scheduler)\b|s3://|traceviz-runs/"
    r"|^archive (?:add|trend)|^(?:collect|sweep|runs)\b|^report$"
)
"""Commands that are not run: they need tagged runs or a network, record, or report on the newest recording."""
GATES = re.compile(r"--(?:fail-on|budget|require-verdict)")
ELSEWHERE = {"nsys", "pip", "srun"}
"""Programs of others that pages use."""


def commands_of_blocks(page: Path) -> Iterator[str]:
    """Yield the command lines in blocks of a page, but for those whose outputs are pasted."""
    whole = page.read_text("utf-8")
    for kind, text in BLOCK.findall(PASTED.sub("", whole) if shows_samples(whole) else whole):
        lines = re.sub(r"\\\n\s*", " ", text)
        if kind == "console":
            found = re.findall(r"^ *\$ (.*(?:\n> .*)*)", lines, re.MULTILINE)
            yield from found or (line for line in lines.splitlines() if re.match(r"make \w", line))
        elif lines.count('"') % 2 == 0 and any(line.count('"') % 2 for line in lines.splitlines()):
            yield " ".join(lines.split())  # one command with a text of several lines
        else:
            yield from filter(str.strip, lines.splitlines())


def words_of(command: str) -> list[str]:
    """Return the words of the last program of a pipe, without a comment and its input."""
    words = [*takewhile(lambda word: word != "<", shlex.split(command, comments=True))]
    return words[len(words) - words[::-1].index("|") :] if "|" in words else words


def parse(words: list[str]) -> click.Context:
    """Parse the words behind ``traceviz``; an unknown command, option or value raises."""
    command: click.Command | None = main
    context = click.Context(main, info_name="traceviz")
    while isinstance(command, click.Group):
        _, command, words = command.resolve_command(context, words)
    assert command is not None
    return command.make_context(command.name, words, parent=context)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recorded run and an archive, which many pages use."""
    folder = tmp_path_factory.mktemp("recorded")
    with zipfile.ZipFile(SAMPLES / "causes" / "recorded" / "jax_healthy.zip") as archive:
        archive.extractall(folder / "run")
    saved = run("report", REPAIRED, "--format", "json", "-o", folder / "last-week.json")
    assert saved.returncode == 0, saved.stderr
    (folder / "budgets.toml").write_text('[budgets]\ninput_wait = "<=5%"\n')
    added = run("archive", "add", folder / "archive", SLOW, REPAIRED, "--workers", "1")
    assert added.returncode == 0, added.stderr
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path, page: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the commands of a page run."""
    made = {name: recorded / name for name in ("last-week.json", "budgets.toml")}
    links = {**NAMES, **made, "shared": recorded / "archive", **OF_PAGE.get(name_of(page), {})}
    if page.name == "recording.md":
        links["run"] = recorded / "run"
    if page.name == "queries.md":
        links = {"runs": recorded / "archive"}
    for name, target in links.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(target)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda *_, **__: True)
    return tmp_path


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix() if page.is_relative_to(DOCS) else page.name


def check(words: list[str], folder: Path) -> None:
    """Run a command of traceviz, or parse it if it cannot run here."""
    text = shlex.join(words)
    if PARSED.search(text):
        parse(words)
        return
    words = [
        name
        for word in words
        for name in (sorted(map(str, Path().glob(word))) if "*" in word and " " not in word else [word])
    ]
    words = ["run.sqlite" if word == "-" else word for word in words if word != "--open"]
    output = Path(words[words.index("-o") + 1]) if "-o" in words else None
    if output and output.is_symlink():
        output.unlink()
    result = run(*words)
    assert result.returncode in ({0, 1, 4} if GATES.search(text) else {0}), f"{text}: {result.stderr}"


def check_program(program: str, words: list[str], folder: Path) -> None:
    """Check a command of any program that pages use."""
    match program, words:
        case "traceviz", _:
            check(words, folder)
        case "make", [target, *_]:
            rule = re.compile(rf"^[\w\- ]*\b{target}\b[\w\- ]*:", re.MULTILINE)
            assert rule.search((REPOSITORY / "Makefile").read_text("utf-8")), target
        case "python", ["-m", module, *_]:
            assert importlib.util.find_spec(module), module
        case "python", [file, *_]:
            assert (REPOSITORY / file).is_file(), file
        case _:
            assert program in ELSEWHERE, program


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_blocks_work(page: Path, folder: Path) -> None:
    for command in commands_of_blocks(page):
        if words := words_of(command):
            check_program(words[0], words[1:], folder)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_within_sentences_work(page: Path, folder: Path) -> None:
    """A complete command runs; of a mention (``traceviz collect --tag``) the command and its options exist."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for mention in dict.fromkeys(INLINE.findall(text)):
        words = words_of(mention)[1:] if "..." not in mention else []
        if any((folder / word).exists() for word in words) and not {"-", "<"} & {*words}:
            check([word.replace("OUT", "copy") for word in words], folder)
            continue
        command: click.Command | None = main
        while isinstance(command, click.Group) and words and words[0].islower():
            _, command, words = command.resolve_command(click.Context(main), words)
        known = {name for part in command.params for name in part.opts} if command else set()
        options = words[: words.index("--")] if "--" in words else words
        assert {word.partition("=")[0] for word in options if word.startswith("--")} - {"--help"} <= known, mention


def test_a_command_with_an_unknown_option_or_value_is_noticed() -> None:
    with pytest.raises(click.UsageError, match="No such option"):
        parse(["collect", "--all-of-it", "--", "python", "train.py"])
    with pytest.raises(click.UsageError, match="not a valid integer"):
        parse(["report", "trace", "--width", "ten"])
