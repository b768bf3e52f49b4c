"""Registries: items of traceviz, of plugins, and of the running program."""

import sys
from dataclasses import dataclass

import pytest

from traceviz.core import registry
from traceviz.core.errors import PluginError, TracevizWarning, UsageError
from traceviz.core.registry import Registry, find_fault_of_plugin, instance_of


@dataclass(frozen=True)
class Tool:
    name: str = "saw"


class Named(Tool):
    pass


def tools(**own):
    return Registry("tool", "traceviz.tools", own, instance_of(Tool), lambda tool: tool.name)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package with entry points, as pip leaves it."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(points, code="", name="acme"):
        lines = "".join(f"{point} = {home}\n" for point, home in points.items())
        folder = tmp_path / f"{name}-1.5.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        (folder / "entry_points.txt").write_text(f"[traceviz.tools]\n{lines}")
        (tmp_path / f"{name}_code.py").write_text(f"from tests.core.test_registry import Tool\n{code}")
        clear()

    def clear():
        registry._all_entry_points.cache_clear()
        registry._entry_points.cache_clear()

    clear()
    yield install
    clear()
    for name in [name for name in sys.modules if name.endswith("_code")]:
        del sys.modules[name]


def test_names_of_plugins_are_listed_after_our_own_without_an_import(install):
    install({"drill": "acme_code:DRILL"}, "raise RuntimeError")
    assert tools(saw=Tool()).names() == ("saw", "drill")
    assert "drill" in tools()
    assert "acme_code" not in sys.modules


def test_an_item_of_a_plugin_is_imported_when_it_is_asked_for(install):
    install({"drill": "acme_code:DRILL"}, "DRILL = Tool('drill')")
    found = tools(saw=Tool())
    assert found.find("saw") == Tool()
    assert "acme_code" not in sys.modules
    assert found.find("drill") == Tool("drill")
    assert [tool.name for tool in found.all()] == ["saw", "drill"]


@pytest.mark.parametrize(
    ("home", "code", "reason"),
    [
        ("nowhere:X", "", "ModuleNotFoundError: No module named 'nowhere'"),
        ("acme_code:DRILL", "", "AttributeError"),
        ("acme_code:DRILL", "1 / 0", "ZeroDivisionError: division by zero"),
        ("acme_code:DRILL", "raise SystemExit(3)", "SystemExit: 3"),
        ("acme_code:DRILL", "DRILL = 7", "TypeError: 7 is no tests.core.test_registry.Tool"),
        ("acme_code:DRILL", "DRILL = Tool('dril')", "names itself 'dril'"),
    ],
)
def test_a_broken_plugin_is_left_out_with_a_warning_and_an_error_only_for_who_names_it(install, home, code, reason):
    install({"drill": home}, code)
    found = tools(saw=Tool())
    with pytest.warns(
        TracevizWarning, match=r"The plugin acme 1\.5 failed: tool 'drill' cannot be loaded.*It is left out"
    ):
        assert found.all() == (Tool(),)
    with pytest.raises(PluginError, match="pip uninstall acme") as caught:
        found.find("drill")
    assert reason in caught.value.why
    assert caught.value.exit_code == 3


def test_a_plugin_cannot_replace_an_item_of_ours(install):
    install({"saw": "acme_code:SAW"}, "SAW = Tool('saw')\nSAW.__dict__['other'] = 1")
    ours = Tool()
    with pytest.warns(TracevizWarning, match="traceviz has a tool of this name"):
        assert tools(saw=ours).all() == (ours,)


def test_of_two_plugins_with_1_name_the_first_is_taken_with_a_warning(install):
    install({"drill": "acme_code:DRILL"}, "DRILL = Tool('drill')")
    install({"drill": "zeta_code:DRILL"}, "raise RuntimeError", name="zeta")
    with pytest.warns(TracevizWarning, match=r"The plugin zeta 1\.5 failed.*acme has one of this name"):
        assert tools().all() == (Tool("drill"),)


def test_an_item_that_a_program_registers_is_found_until_it_is_removed():
    found = tools(saw=Tool())
    assert found.register(Named("drill")) is found.find("drill")
    assert found.names() == ("saw", "drill")
    assert len(found.all()) == 2
    found.unregister("drill")
    assert found.all() == (Tool(),)


def test_a_class_is_registered_as_an_instance():
    assert tools().register(Named) == Named()


def test_registering_a_name_of_ours_or_another_thing_is_refused():
    with pytest.raises(ValueError, match="'saw' belongs to traceviz"):
        tools(saw=Tool()).register(Tool())
    with pytest.raises(TypeError, match="'saw' is no"):
        tools().register("saw")


def test_an_unknown_name_is_refused_with_the_nearest_and_those_of_plugins(install):
    install({"drill": "acme_code:DRILL"})
    with pytest.raises(UsageError, match=r"no tool 'dril'.*Did you mean 'drill'\?.*Known: drill, saw"):
        tools(saw=Tool()).find("dril")


def test_an_error_in_the_code_of_a_plugin_is_its_fault_and_no_other_is(install):
    install({"drill": "acme_code:DRILL"}, "DRILL = Tool('drill')\ndef fail():\n    return {}['x']")
    tools().all()
    with pytest.raises(KeyError) as caught:
        sys.modules["acme_code"].fail()
    assert "The plugin acme 1.5 failed: an error in acme_code, line 4" in str(find_fault_of_plugin(caught.value))
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        int("x")
    assert find_fault_of_plugin(caught.value) is None
