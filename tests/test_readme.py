"""What the README shows is what the program prints."""

import re

from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.api import RenderOptions

SECTIONS = ["breakdown", "input_pipeline", "cuda_api"]


def test_the_pasted_report_is_what_the_command_prints():
    pasted = re.search(
        r"```console\n\$ traceviz report (\S+) --width 80.*?\n.*?\n(.*?)\n```",
        (REPOSITORY / "README.md").read_text(),
        re.DOTALL,
    )
    found = api.report_on(REPOSITORY / pasted[1], sections=SECTIONS)
    assert pasted[2] == api.to_text(found, "terminal", RenderOptions(width=80)).rstrip("\n")


def test_every_command_and_linked_file_exists():
    from traceviz.cli import main

    text = (REPOSITORY / "README.md").read_text()
    assert set(re.findall(r"^\| `traceviz (\w+)", text, re.MULTILINE)) == set(main.commands)
    assert all((REPOSITORY / link).exists() for link in re.findall(r"\]\(([^)h][^)]*)\)", text))
