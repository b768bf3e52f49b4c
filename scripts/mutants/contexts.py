"""A plugin of pytest that writes down which test runs which line: ``-p contexts``, with CONTEXTS naming a folder.

A fixture that several tests share runs in the first of them only, and what a file of tests does when it is imported
in none. Both have contexts of their own here, which are those of every test that they are for.
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
    """Switches the context of the measurement."""

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
        """What a file of tests does when it is imported is for all tests of the file."""
        before = self._switch(f"file {collector.path}" if isinstance(collector, pytest.Module) else OUTSIDE)
        yield
        self._switch(before)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """The context of a test is its name."""
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
        """What a shared fixture does is for all tests that use it."""
        before = self._now
        if fixturedef.scope != "function":
            self._switch(_key(fixturedef))
        yield
        self._switch(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """How long a test takes, and whether it says anything: a skipped one does not."""
        if test := self._tests.get(report.nodeid):
            test["seconds"] += report.duration
            test["passed"] &= report.passed

    def pytest_sessionfinish(self) -> None:
        """Write down what was seen."""
        self._coverage.stop()
        self._coverage.save()
        (self._folder / f"{self._name}.json").write_text(json.dumps(self._tests), "utf-8")


def _key(definition: Any) -> str:
    return f"fixture {definition.baseid} {definition.argname}"


def pytest_configure(config: pytest.Config) -> None:
    """Measure from the start on; the process that only hands out tests does not."""
    is_distributing = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not is_distributing:
        folder = Path(os.environ["CONTEXTS"])
        files = json.loads((folder / "files.json").read_text("utf-8"))
        config.pluginmanager.register(Contexts(folder, files), "traceviz-contexts")


def read(folder: Path) -> tuple[dict[str, dict[int, set[str]]], dict[str, float]]:
    """Tests by line of every file, and how long each test takes, of those that pass."""
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
