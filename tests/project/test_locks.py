"""Locks: they hold what pyproject.toml asks for, on each Python and processor, with the hash of each file."""

import re
import tomllib
from itertools import product

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.newest import newest
from tests.conftest import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
RUN = [*PROJECT["project"]["dependencies"], *GROUPS["build"]]
ASKED = {
    "run": RUN,
    "dev": [*RUN, *GROUPS["dev"]],
    **{name: GROUPS[name] for name in GROUPS if name not in {"build", "dev"}},
}
WITHOUT_HASHES = {"torch"}
ENVIRONMENTS = [
    {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "platform_machine": machine,
        "sys_platform": "linux",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "extra": "",
    }
    for python, machine in product(("3.11", "3.12", "3.13", "3.14"), ("x86_64", "aarch64"))
]
ENTRY = re.compile(
    r"^(?P<requirement>[a-z0-9-]+==[\w.+]+(?: ; [^\\]+?)?)(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})*)$",
    re.MULTILINE,
)


def entries(name):
    """Return the requirements of a lock, with the hashes of each."""
    text = (REPOSITORY / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    rest = ENTRY.sub("", text)
    assert [line for line in rest.splitlines() if line.strip() and not line.lstrip().startswith("#")] == []
    found = [(Requirement(match["requirement"]), match["hashes"].count("sha256:")) for match in ENTRY.finditer(text)]
    assert found
    return found


def locked(name, environment):
    """Return versions that a lock installs in ``environment``, by name."""
    versions = {}
    for requirement, _ in entries(name):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            assert requirement.name not in versions
            versions[requirement.name] = str(requirement.specifier).removeprefix("==")
    return versions


def disagreements(asked, versions, environment):
    """Return requirements that hold in ``environment`` and that the locked versions do not meet."""
    wanted = [
        requirement
        for requirement in map(Requirement, asked)
        if not requirement.marker or requirement.marker.evaluate(environment)
    ]
    return [
        str(requirement)
        for requirement in wanted
        if not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), "0"), prereleases=False)
    ]


@pytest.mark.parametrize("name", ASKED)
def test_a_lock_holds_all_that_is_asked_for_within_its_range_on_each_python(name) -> None:
    assert [disagreements(ASKED[name], locked(name, environment), environment) for environment in ENVIRONMENTS] == [
        []
    ] * 8


def test_a_lock_that_lacks_a_package_or_has_another_version_is_noticed() -> None:
    versions = {"polars": "2.1.0", "click": "9.0"}
    asked = ["polars>=2,<3", "click>=8.1.3,<9", "numpy>=1.26", "isal>=1.5; platform_machine == 'riscv64'"]
    assert disagreements(asked, versions, ENVIRONMENTS[0]) == ["click<9,>=8.1.3", "numpy>=1.26"]


def test_locks_are_those_of_the_groups() -> None:
    assert {path.stem for path in (REPOSITORY / "requirements").iterdir()} == set(ASKED)
    assert len(ASKED) == 8


@pytest.mark.parametrize("name", ASKED)
def test_each_entry_has_hashes_and_no_lock_names_an_index(name) -> None:
    """``entries`` refuses any other line, such as ``--index-url``."""
    without = [str(requirement) for requirement, hashes in entries(name) if not hashes]
    assert (len(without) == len(entries(name))) if name in WITHOUT_HASHES else (without == [])


def test_what_runs_is_the_same_in_both_locks() -> None:
    for environment in ENVIRONMENTS:
        run, dev = locked("run", environment), locked("dev", environment)
        assert run == {name: dev[name] for name in run}
        assert 25 < len(run) < len(dev)


def test_builds_fetch_nothing_that_is_not_locked() -> None:
    build = [Requirement(text) for text in PROJECT["build-system"]["requires"]]
    group = {Requirement(text).name: Requirement(text) for text in GROUPS["build"]}
    assert [group[requirement.name].specifier for requirement in build] == [
        requirement.specifier for requirement in build
    ]
    assert {"cmake", "ninja", "setuptools"} < group.keys()  # what the backend asks for where the machine lacks it


def test_each_dependency_has_a_range() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [*PROJECT["project"]["dependencies"], *(text for texts in extras.values() for text in texts)]
    signs = [sorted(bound.operator for bound in Requirement(text).specifier) for text in asked]
    assert signs == [["<", ">="]] * len(asked)
    assert len(asked) == 28


def test_the_newest_of_everything_is_asked_for_without_upper_bounds() -> None:
    project = {
        "project": {"dependencies": ["polars>=2,<3", "isal >= 1.5, < 2; platform_machine == 'x86_64'", "click<9,>=8"]},
        "dependency-groups": {
            "build": ["cmake>=3.18"],
            "dev": ["nvtx==0.2.11; python_version < '3.14'", "dask[distributed]>=1,<=2.5"],
        },
    }
    assert [str(Requirement(text)) for text in newest(project)] == [
        "polars>=2",
        'isal>=1.5; platform_machine == "x86_64"',
        "click>=8",
        "cmake>=3.18",
        'nvtx==0.2.11; python_version < "3.14"',
        "dask[distributed]>=1",
    ]
    assert [text for text in newest(PROJECT) if "<" in text.partition(";")[0]] == []
