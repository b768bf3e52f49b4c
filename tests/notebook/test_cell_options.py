"""Options of ``%%traceviz``, without a kernel."""

from __future__ import annotations

import threading

import pytest

from traceviz.collectors.base import Window
from traceviz.collectors.this_process import WHOLE
from traceviz.core.errors import UsageError
from traceviz.notebook.magics import cell_options, threads_of_kernel


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ([], WHOLE),
        (["--duration", "2s"], Window(0, None, 0.0, 2.0)),
        (["--duration=2s"], Window(0, None, 0.0, 2.0)),
        (["--steps", "10:30"], Window(10, 20)),
        (["--delay", "1s"], Window(0, None, 1.0, None)),
    ],
)
def test_the_profilers_record_30_s_unless_they_are_told(words: list[str], window: Window) -> None:
    assert cell_options(words).window == window
    assert WHOLE.duration_s == 30.0


def test_options_are_those_of_collect_and_a_run_is_called_cell() -> None:
    options = cell_options(["--profilers", "torch,stacks", "--tag", "batch=8", "--force", "--rate", "20"])
    assert options.collectors == ("torch", "stacks")
    assert dict(options.tags) == {"batch": "8"}
    assert (options.name, options.force, options.rate_hz) == ("cell", True, 20.0)


@pytest.mark.parametrize("word", ["--nsys-args=-t", "--time-limit=3s", "--dry-run", "--nvtx=off"])
def test_options_for_whole_programs_are_refused(word: str) -> None:
    with pytest.raises(UsageError, match="is for a whole program"):
        cell_options([word])


def test_a_thread_of_a_program_is_none_of_the_kernels() -> None:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    assert thread.ident not in threads_of_kernel()
    ended.set()
    thread.join()
