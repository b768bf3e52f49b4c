"""The commands and files that the README names exist; test_docs.py compares its report with the program's."""

import re

from scripts.generate_docs import README
from traceviz.cli.main import main


def test_every_command_and_linked_file_exists():
    text = README.read_text()
    assert set(re.findall(r"^\| `traceviz (\w+)", text, re.MULTILINE)) == set(main.commands)
    assert all((README.parent / link).exists() for link in re.findall(r"\]\(([^)h][^)]*)\)", text))
