"""Registry of findings: lookup by code and slug, records of plugins, and imports of requested findings only."""

import subprocess
import sys
from dataclasses import replace

import pytest

from traceviz.core.errors import UsageError
from traceviz.report.findings.registry import FINDINGS, codes, find_record, record_of, register


@pytest.fixture
def plugin():
    record = replace(record_of("TV101"), code="ACME1", slug="slow-acme-cache")
    yield register(record)
    FINDINGS.unregister("ACME1")


@pytest.mark.parametrize("name", ["TV101", "tv101", "input-bound", "INPUT-BOUND"])
def test_a_record_is_found_by_code_and_slug_in_any_case(name):
    assert record_of(name).code == "TV101"
    assert record_of(name) is find_record("TV101")


def test_an_unknown_finding_lists_those_that_exist():
    assert find_record("TV000") is None
    assert find_record("") is None
    with pytest.raises(UsageError, match=r"no finding 'TV000'.*TV101 \(input-bound\)"):
        record_of("TV000")


def test_a_registered_record_is_found_and_listed_like_any_other(plugin):
    assert record_of("acme1") is record_of("slow-acme-cache") is plugin
    assert codes()[0] == "TV101"
    assert codes()[-1] == "ACME1"
    assert len(codes()) > 70
    with pytest.raises(UsageError, match=r"ACME1 \(slow-acme-cache\)"):
        record_of("ACME2")


def test_registering_the_same_record_twice_changes_nothing(plugin):
    register(replace(plugin))
    assert codes().count("ACME1") == 1


@pytest.mark.parametrize(
    ("code", "slug", "reason"),
    [
        ("ACME2", "input-bound", "'input-bound'"),
        ("TV950", "own", "TV950"),
        ("TV101", "input-bound", "TV101"),
        ("A", "own", "'A'"),
    ],
)
def test_a_code_or_slug_of_ours_is_refused(plugin, code, slug, reason):
    with pytest.raises(ValueError, match=reason):
        register(replace(plugin, code=code, slug=slug))


def test_a_lookup_imports_one_record():
    code = (
        "import sys; from traceviz.report.findings.registry import codes, record_of; codes(); record_of('straggler');"
        "print([name for name in sys.modules if name.startswith('traceviz.report.findings.tv')])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "['traceviz.report.findings.tv501_straggler']\n"
