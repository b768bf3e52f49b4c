"""Stacks that are deeper than the limit: the innermost frames stay, and the outermost show the callers."""

import json
import sys
from importlib import import_module

import pytest


@pytest.fixture
def seen(hook):
    """The functions of a stack, outermost first, as they are written for one that is so many calls deep."""

    class Places:
        def name(self, file: str, module: str) -> tuple[str, str] | None:
            return ("deep.py", "program") if file.endswith("test_deep_stacks.py") else None

    def functions(depth: int) -> list[str]:
        lines: list[str] = []
        interning = hook("stacks.interning").Interning(lines, Places())

        def outermost() -> int:
            return within(depth - 3)

        def within(left: int) -> int:
            return within(left - 1) if left else innermost()

        def innermost() -> int:
            frame = sys._getframe()
            return interning.number(Cut(frame, depth))

        stack = outermost()
        records = [json.loads(line) for line in lines]
        frames = {record[1]: record[2] for record in records if record[0] == "frame"}
        stacks = {record[1]: (record[2], record[3]) for record in records if record[0] == "stack"}
        found = []
        parent: int | None = stack
        while parent is not None:
            parent, frame = stacks[parent]
            found.append(frames[frame].rpartition(".")[2])
        return found[::-1]

    yield functions
    for name in [name for name in sys.modules if name.startswith("traceviz_inject")]:
        del sys.modules[name]


class Cut:
    """A frame with so many frames in all: those of the test's own runner are not there."""

    def __init__(self, frame, left: int) -> None:
        self._frame, self._left = frame, left

    def __getattr__(self, name: str):
        return getattr(self._frame, name)

    @property
    def f_back(self):
        return Cut(self._frame.f_back, self._left - 1) if self._left > 1 else None


@pytest.mark.parametrize(("depth", "kept"), [(100, 100), (128, 128), (129, 128), (700, 128)])
def test_of_a_deep_stack_both_ends_are_kept(seen, depth: int, kept: int) -> None:
    functions = seen(depth)
    assert len(functions) == kept
    assert (functions[0], functions[-1]) == ("outermost", "innermost")


def test_of_a_recursion_only_the_innermost_frames_are_kept(seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("traceviz_inject.stacks.interning"), "FARTHEST", 300)
    functions = seen(400)
    assert (len(functions), functions[0], functions[-1]) == (112, "within", "innermost")
