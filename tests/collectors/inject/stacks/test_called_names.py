"""Names of what Python code calls, read from its instructions."""

import dis
import sys
import threading
import time
from types import CodeType, ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="older Pythons do not say where calls begin")


@pytest.fixture
def names(hook: Any) -> ModuleType:
    module: ModuleType = hook("stacks.interning")
    return module


def compiled(source: str) -> CodeType:
    return compile(source, "train.py", "exec")


@pytest.mark.parametrize(
    ("source", "called"),
    [
        ("time.sleep(1)", ["time.sleep"]),
        ("os.fsync(file.fileno())", ["file.fileno", "os.fsync"]),
        ("self.state.lock.acquire(timeout=3)", ["self.state.lock.acquire"]),
        ("sorted(rows, key=f(2))", ["f", "sorted"]),
        ("json.dumps(rows).encode()", ["json.dumps", "encode"]),
        ("loss = model(x) @ weights", ["model", "operator.matmul"]),
        ("with lock: pass", ["lock.__enter__"]),
        ("getattr(a, name)(3)", ["getattr"]),
        ("x = 3 + y", []),
    ],
)
def test_a_call_has_the_names_that_its_expression_begins_with(
    names: ModuleType, source: str, called: list[str]
) -> None:
    found = names.called_names(compiled(source))
    if source.startswith("with"):  # how the end of the block is called differs between Pythons
        assert next(iter(found.values())).endswith("__enter__")
    else:
        assert list(dict.fromkeys(found.values())) == called


def test_the_offset_is_that_of_the_frame_while_the_call_runs(names: ModuleType) -> None:
    begun, ends = threading.Event(), threading.Event()
    here: list[int] = []

    def works() -> None:
        here.append(threading.get_ident())
        begun.set()
        while not ends.is_set():
            time.sleep(0.05)

    thread = threading.Thread(target=works)
    thread.start()
    begun.wait()
    seen = set()
    for _ in range(200):
        frame = sys._current_frames()[here[0]]
        if frame.f_code is works.__code__:
            seen.add(names.called_names(frame.f_code).get(frame.f_lasti))
        if "time.sleep" in seen:
            break
        time.sleep(0.01)
    ends.set()
    thread.join()
    assert "time.sleep" in seen


def test_names_are_bounded_and_so_is_the_search(names: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    (name,) = set(names.called_names(compiled(f"a.{'b' * 300}()")).values())
    assert len(name) == names.LONGEST == 100
    monkeypatch.setattr(names, "_MOST_INSTRUCTIONS", 40)
    code = compiled("\n".join(f"f{number}()" for number in range(1_000)))
    assert 0 < len(names.called_names(code)) < 20


def test_a_stack_that_was_seen_before_has_what_its_innermost_frame_calls(hook: Any) -> None:
    """The first time nothing is looked up: most stacks of imports are seen once."""
    places = hook("stacks.frame_names").Places("/nowhere")
    lines: list[str] = []
    interning = hook("stacks.interning").Interning(lines, places)
    lock, begun = threading.Lock(), threading.Event()

    def waits() -> None:
        begun.set()
        lock.acquire()

    with lock:
        thread = threading.Thread(target=waits)
        thread.start()
        begun.wait()
        while sys._current_frames()[thread.ident or 0].f_code is not waits.__code__:
            time.sleep(0.01)
        time.sleep(0.1)
        frame = sys._current_frames()[thread.ident or 0]
        numbers = [interning.number(frame) for _ in range(3)]
    thread.join()
    assert numbers[0] != numbers[1] == numbers[2]
    assert '"lock.acquire","",null,"native"]' in "".join(lines)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="all instructions of older versions have a line")
def test_a_jump_back_without_a_line_is_in_the_first_line_of_its_loop(names: ModuleType) -> None:
    code = compiled("n = 0\nfor k in range(9):\n    n += k\n    if n > 5:\n        n = 0\n")
    lines = {start: line for start, _, line in code.co_lines()}
    jumps = [at for at in dis.get_instructions(code) if at.opname == "JUMP_BACKWARD" and lines.get(at.offset) is None]
    assert {names.line_of_jump(code, at.offset) for at in jumps} <= {2}
    assert names.line_of_jump(code, max(start for start, line in lines.items() if line == 4)) == 4
