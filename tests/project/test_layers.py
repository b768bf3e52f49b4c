"""The layers that imports are checked against hold every module of the package."""

import tomllib

from tests.conftest import REPOSITORY

ENTRANCES = {"__init__", "__main__"}
"""Entry points, which may import everything."""


def test_every_module_lies_in_1_layer():
    stated = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    of_the_package = [c for c in stated if c["type"] == "layers" and "containers" not in c]
    (layers,) = (contract["layers"] for contract in of_the_package)
    named = [name.strip().removeprefix("traceviz.") for layer in layers for name in layer.split("|")]
    entries = [
        path for path in (REPOSITORY / "traceviz").iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    ]
    modules = {path.stem for path in entries} | {"parsers", "collectors"}
    assert sorted(named) == sorted(modules - ENTRANCES)
    assert len(named) > 15
