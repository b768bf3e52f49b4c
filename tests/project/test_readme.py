"""The README and the table of commands name what exists; test_documented_commands.py runs their commands."""

import re

from scripts.generate_docs import DOCS, README
from traceviz.cli.main import main


def test_every_command_is_in_the_table_of_commands() -> None:
    text = (DOCS / "commands.md").read_text("utf-8")
    assert set(re.findall(r"^\| `traceviz (\w+)", text, re.MULTILINE)) == set(main.commands)


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\(([^)h][^)]*)\)", README.read_text("utf-8"))
    assert len(links) > 20
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_the_readme_is_at_most_150_lines() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 150
