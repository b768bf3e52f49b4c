"""Plugin of pytest that records which tests run each line: ``-p contexts``, with CONTEXTS naming a folder.

A fixture that several tests share runs in the first of them only, and the import of a file of tests runs in none. Both
have their own contexts here, which count for every test that needs them.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

OUTSIDE = "outside"


class Contexts:
    """Measurement of coverage with a context for each test."""

    def __init__(self, folder: Path, files: list[str]) -> None:
        name = uuid.uuid4().hex
        self._folder, self._name = folder, name
        self._coverage = coverage.Coverage(data_file=folder / f"{name}.coverage", include=files, config_file=False)
        self._coverage.start()
        self._coverage.switch_context(OUTSIDE)
        self._now = OUTSIDE
        self._tests: dict[str, dict[str, Any]] = {}

    def _switch(self, context: str) -> str:
        before, self._now = self._now, context
        self._coverage.switch_context(context)
        return before

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Measure the import of a file of tests for all its tests."""
        before = self._switch(f"file {collector.path}" if isinstance(collector, pytest.Module) else OUTSIDE)
        yield
        self._switch(before)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure a test under its name."""
        info = getattr(item, "_fixtureinfo", None)
        shared = [
            _key(definition)
            for definitions in (info.name2fixturedefs.values() if info else ())
            for definition in definitions
            if definition.scope != "function"
        ]
        self._tests[item.nodeid] = {"shared": [*shared, f"file {item.path}"], "seconds": 0.0, "passed": True}
        before = self._switch(item.nodeid)
        yield
        self._switch(before)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Measure a shared fixture for all tests that use it."""
        before = self._now
        if fixturedef.scope != "function":
            self._switch(_key(fixturedef))
        yield
        self._switch(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record how long a test takes, and whether it passed: a skipped one does not count."""
        if test := self._tests.get(report.nodeid):
            test["seconds"] += report.duration
            test["passed"] &= report.passed

    def pytest_sessionfinish(self) -> None:
        """Save the measurement."""
        self._coverage.stop()
        self._coverage.save()
        (self._folder / f"{self._name}.json").write_text(json.dumps(self._tests), "utf-8")


def _key(definition: Any) -> str:
    return f"fixture {definition.baseid} {definition.argname}"


def pytest_configure(config: pytest.Config) -> None:
    """Measure from the start on, except in the process that only distributes tests."""
    is_distributing = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not is_distributing:
        folder = Path(os.environ["CONTEXTS"])
        files = json.loads((folder / "files.json").read_text("utf-8"))
        config.pluginmanager.register(Contexts(folder, files), "traceviz-contexts")


def read(folder: Path) -> tuple[dict[str, dict[int, set[str]]], dict[str, float]]:
    """Return the tests by line of every file, and the time of each test; only tests that pass count."""
    tests: dict[str, dict[str, Any]] = {}
    for path in folder.glob("*.json"):
        if path.name != "files.json":
            tests.update(json.loads(path.read_text("utf-8")))
    tests = {name: test for name, test in tests.items() if test["passed"]}
    users: defaultdict[str, set[str]] = defaultdict(set)
    for name, test in tests.items():
        for context in (name, *test["shared"]):
            users[context].add(name)
    lines: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in folder.glob("*.coverage"):
        data = coverage.CoverageData(path)
        data.read()
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                lines[file][line].update(*(users[context] for context in contexts))
    return {file: dict(found) for file, found in lines.items()}, {name: test["seconds"] for name, test in tests.items()}
