"""Documentation agrees with the code."""

import inspect
import re
from pathlib import Path

import pytest

from scripts.generate_docs import DOCS, PAGES, PASTED, README, SIGNS, main, marked, outdated, section_of
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


def test_marks_stand_behind_the_first_lines_with_their_words() -> None:
    assert marked("Kernel  Calls\nadd     3\nKernel", ["Kernel", "Kernel", "absent", "add"]).splitlines() == [
        f"{'Kernel  Calls':<80}  ①",
        f"{'add     3':<80}  ④",
        f"{'Kernel':<80}  ②",
    ]


def test_a_section_ends_before_the_next_heading() -> None:
    report = "verdict\n\nSteps ────\n  count  3\n\nFindings ── largest first\n  none"
    assert section_of(report, "Steps") == "Steps ────\n  count  3"
    assert section_of(report, "Findings") == "Findings ── largest first\n  none"
    assert section_of(report, "until Steps") == "verdict\n\n..."


@pytest.mark.parametrize("page", [README, *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.name)
def test_every_mark_of_a_page_is_placed_and_explained(page: Path) -> None:
    text = page.read_text("utf-8")
    for block in PASTED.finditer(text):
        asked = SIGNS[: len([words for words in (block["marks"] or "").split("|") if words.strip()])]
        table = re.match(r"\n\n\| \| read \|\n\|---\|---\|\n((?:\| . \|.*\n)+)", text[block.end() :])
        explained = re.findall(r"^\| (.) \|", table[1], re.MULTILINE) if table else []
        assert sorted(re.findall(f"[{SIGNS}]", block["output"])) == [*asked] == explained


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([\w./-]+\.(?:md|svg))(?:#[\w-]+)?\)", page.read_text())
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
