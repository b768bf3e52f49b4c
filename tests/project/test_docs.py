"""Documentation agrees with the code."""

import inspect
import re
from pathlib import Path

import pytest

from scripts.generate_docs import DOCS, PAGES, main, outdated
from traceviz.analyses.derived import statistics
from traceviz.analyses.registry import analyses
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.report.findings.registry import codes
from traceviz.trace.schema import TABLES

pytestmark = pytest.mark.process

REPOSITORY = DOCS.parent


def test_generated_pages_are_up_to_date() -> None:
    assert outdated() == [], "run: python scripts/generate_docs.py"


def test_check_names_the_page_that_differs(tmp_path: Path, monkeypatch, capsys) -> None:
    for name, page in PAGES.items():
        (tmp_path / name).write_text(page())
    (tmp_path / "tables.md").write_text("old")
    assert outdated(tmp_path) == ["tables.md"]
    monkeypatch.setattr("scripts.generate_docs.outdated", lambda: ["tables.md"])
    assert main(["--check"]) == 1
    assert "tables.md" in capsys.readouterr().err


def test_every_table_column_and_rule_is_documented() -> None:
    tables, findings = PAGES["tables.md"](), PAGES["findings.md"]()
    for table in TABLES.values():
        section = tables.split(f"\n## {table.name}\n")[1].split("\n## ")[0]
        assert [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")] == [
            column.name for column in table.columns
        ]
    catalogue = PAGES["catalogue.md"]()
    assert [line.split("`")[1] for line in catalogue.splitlines() if line.startswith("| `")] == [*CATALOGUE.names]
    assert re.findall(r"^## (TV\d+)", findings, re.MULTILINE) == list(codes())


def _json_table() -> dict[str, tuple[list[str], list[str]]]:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| ?(.*?) ?\|$", (DOCS / "json.md").read_text(), re.MULTILINE)
    return {slug: (facts.split(", "), columns.split(", ") if columns else []) for slug, facts, columns in rows}


def test_json_names_are_documented_for_every_section_in_order() -> None:
    assert sorted(_json_table()) == sorted(analysis.slug for analysis in analyses())


@pytest.mark.parametrize("analysis", analyses(), ids=lambda analysis: analysis.slug)
def test_documented_json_names_occur_in_the_analysis(analysis) -> None:
    facts, columns = _json_table()[analysis.slug]
    question = Path(inspect.getfile(type(analysis))).parent
    source = "".join(path.read_text() for path in question.glob("*.py"))
    shared = inspect.getsource(statistics)
    assert [name for name in facts if f'Fact("{name}"' not in source] == []
    assert [name for name in columns if f'Column("{name}"' not in source + shared] == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([\w./-]+\.md)(?:#[\w-]+)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).is_file()] == []


def test_files_named_in_contributing_exist() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:traceviz|parsers|docs|scripts|tests)/[\w./]+)`", text))
    assert len(named) >= 8
    assert [name for name in sorted(named) if not (REPOSITORY / name).exists()] == []


def test_the_license_is_complete() -> None:
    text = (REPOSITORY / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text
    assert len(text.splitlines()) >= 200
