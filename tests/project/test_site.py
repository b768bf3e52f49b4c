"""The check of the built site, on a site of two pages."""

from pathlib import Path

import pytest

from scripts.check_site import faults

HEALTHY = """<link rel="canonical" href="https://example.org/"><link rel="stylesheet" href="site.css">
<img src="steps.svg"><a href="other.html#there">on</a> <a href="#here" id="here">here</a> <a href="https://example.org">out</a>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text(HEALTHY)
    (tmp_path / "other.html").write_text('<h2 id="there">There</h2>')
    (tmp_path / "steps.svg").write_text("<svg/>")
    (tmp_path / "site.css").write_text("a { background: url(data:image/png;base64,) }")
    return tmp_path


def test_a_site_that_stands_alone_has_no_faults(site: Path) -> None:
    assert faults(site) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('src="steps.svg"', 'src="https://example.org/a.png"', "loads https://example.org/a.png"),
        ('src="steps.svg"', 'src="//example.org/a.png"', "loads //example.org/a.png"),
        ('src="steps.svg"', 'src="absent.svg"', "absent.svg leads nowhere"),
        ("#there", "#gone", "other.html#gone names no anchor"),
        ("other.html#there", "gone.html", "gone.html leads nowhere"),
    ],
)
def test_a_fault_is_named_with_its_page(site: Path, old: str, new: str, fault: str) -> None:
    (site / "index.html").write_text(HEALTHY.replace(old, new))
    assert faults(site) == [f"index.html: {fault}"]


def test_styles_that_load_from_elsewhere_and_an_empty_folder_are_faults(site: Path, tmp_path: Path) -> None:
    (site / "site.css").write_text("@import url(https://example.org/fonts.css);")
    assert faults(site) == ["site.css: loads from url(http", "site.css: loads from @import"]
    assert faults(tmp_path / "absent") == [f"{tmp_path / 'absent'}: no pages"]
