"""The README shows the program's actual output, and the things that it names exist."""

import re

import pytest

from scripts.generate_docs import README, readme
from traceviz.cli.main import main


@pytest.mark.process
def test_the_pasted_report_is_what_the_command_prints():
    assert README.read_text() == readme(), "run: python scripts/generate_docs.py"


def test_every_command_and_linked_file_exists():
    text = README.read_text()
    assert set(re.findall(r"^\| `traceviz (\w+)", text, re.MULTILINE)) == set(main.commands)
    assert all((README.parent / link).exists() for link in re.findall(r"\]\(([^)h][^)]*)\)", text))
