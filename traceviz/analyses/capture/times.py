"""Measures of time: the whole run, start-up, epochs, samples per second, latency."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.capture.measure import Key, Measure, quantile
from traceviz.analyses.derived.capture.kind import capture_kind
from traceviz.analyses.derived.frames import having, intervals
from traceviz.analyses.derived.run_parts.main_process import MainProcess, main_process
from traceviz.analyses.derived.run_parts.parts import run_parts
from traceviz.analyses.derived.run_parts.run_steps import RunSteps, epoch_times, run_steps
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.resampling import mean_interval
from traceviz.core.units import counted, format_ns
from traceviz.report import TAG

FINISHED = "finished"
"""Outcome of a program that ended by itself and without failure. The full time of other programs is not known."""
FEWEST = 10
"""Least number of steps for a figure of their speed."""
LATENCIES: tuple[tuple[Key, float, int], ...] = (
    ("latency_p50_ns", 0.50, 10),
    ("latency_p95_ns", 0.95, 20),
    ("latency_p99_ns", 0.99, 100),
)
"""Quantiles of latency, and the least number of calls for each."""
_BATCH = re.compile(rf"(?i){re.escape(TAG)}batch[-_ ]?size|{re.escape(TAG)}batch")
"""Settings that are a tag with the size of the batch."""
FOUND = "found_update"
"""Source of steps that hooks found as a repeating function; the function follows."""
_LONGEST_NAME = 60
BATCH = "process.batch"
"""Setting of a process: samples per step, as hooks in the program saw them."""
LEARNS = "process.gradients"
"""Setting of a process: 1 if gradients were computed, 0 if none were although hooks watched for them."""
_WATCHED = r"^(?:jax|tf|torch)_"
"""Sources of steps in frameworks whose gradients hooks can see."""
_LEARNING = r"(?i)backward|apply_gradients|value_and_grad|optimizer|train_?(?:ing)?_?(?:step|batch|one_batch)$"
"""Functions of programs that learn."""
_INFERENCE = frozenset({"inference", "forward-pass"})


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples that a step takes.

    Args:
        size: Their number, over all processes that train.
        about: Text that states the source.
    """

    size: float
    about: str


def batch_of(trace: TraceView, stated: Mapping[str, str]) -> Batch | None:
    """Return the batch as hooks in the program saw it, else as a tag of the run states it.

    Args:
        trace: The trace.
        stated: Settings that belong to no process.
    """
    main = main_process(trace)
    if main is not None:
        size = _number(_stated(trace, BATCH))
        if size:
            each = "" if main.processes == 1 else f" in each of {main.processes} processes"
            return Batch(size * main.processes, f"batch {size:g}{each}")
    tagged = next((value for key, value in stated.items() if _BATCH.fullmatch(key)), None)
    size = _number(tagged)
    return Batch(size, f"batch {size:g}, as tagged") if size else None


def _number(text: str | None) -> float | None:
    """Return a number above zero; ``None`` for other texts."""
    if text is None or re.fullmatch(r"\d{1,12}(?:\.\d{1,6})?", text.strip(), re.ASCII) is None:
        return None
    return float(text) or None


def measures_of_time(
    trace: TraceView, stated: Mapping[str, str], outcome: str | None, batch: Batch | None
) -> Iterator[Measure]:
    """Yield all known times of the run and its parts.

    Args:
        trace: The trace.
        stated: Settings that belong to no process.
        outcome: How the program ended.
        batch: Samples of a step.
    """
    main, steps = main_process(trace), run_steps(trace)
    lasted = stated.get("run.duration_ns", "")
    if outcome == FINISHED and lasted.isascii() and lasted.isdigit() and len(lasted) <= 18:
        parts = run_parts(trace)
        recording = min(parts.recording_ns, int(lasted)) if parts else 0
        left_out = f", without {format_ns(recording)} of recording" if recording else ""
        yield Measure("total_ns", int(lasted) - recording, f"start to end{left_out}")
    if main is not None and steps is not None:
        yield from _around_steps(main, steps, outcome, learns=steps.learns or _stated(trace, LEARNS) == "1")
    epochs = epoch_times(trace)
    if epochs.size:
        yield Measure("first_epoch_ns", int(epochs[0]), "without validation, saving")
    if epochs.size > 1:
        yield quantile("epoch_ns", epochs[1:], 0.5, f"median of {counted(epochs.size - 1, 'epoch')}, without the first")
    if epochs.size:
        yield Measure("epochs", epochs.size, "complete ones")
    if steps is not None:
        yield Measure("steps", steps.count, f"of {_maker(steps)}")
    yield from _speed(trace, steps, batch)


def _around_steps(main: MainProcess, steps: RunSteps, outcome: str | None, *, learns: bool) -> Iterator[Measure]:
    """Yield times from the start of the program to its first and last step, without the time of recording."""
    program = having(main.phases, "kind", "program")
    if not program.height:
        return
    begin, recording = main.begin_ns, intervals(having(main.phases, "kind", "recording"))
    until_last = steps.end_ns - begin - recording.clip(begin, steps.end_ns).total
    until_first = steps.begin_ns - begin - recording.clip(begin, steps.begin_ns).total
    if outcome == FINISHED and until_last > 0:
        what = "training" if learns else "its loop"
        yield Measure("training_ns", until_last, f"from the start to the end of {what}")
    if until_first > 0 and not steps.source.startswith(FOUND):  # hooks find such steps late, after the loop has started
        yield Measure("start_ns", until_first, "imports, data, the model")


def _maker(steps: RunSteps) -> str:
    """Return the name of the source of steps, for readers: ``Keras``, ``the torch optimizer``."""
    source, _, found = steps.source.partition(" ")
    if source == FOUND:
        return f"{found[:_LONGEST_NAME]}, which is taken for what ends a step"
    return _MAKERS.get(source) or f"the {source.replace('_', ' ')}"


_MAKERS = {"keras": "Keras", "program_step": "the program's own marks"}
"""Readable names of sources of steps whose own names are unclear."""


def _speed(trace: TraceView, steps: RunSteps | None, batch: Batch | None) -> Iterator[Measure]:
    """Yield samples per second in steady steps, and the latency of a program that only applies a model."""
    if steps is not None:
        times, where = steps.steady, ", profiled" if steps.profiled else ""
    else:  # steady steps of the first process that has any
        steady = training_steps(trace).steady
        own = steady.filter(process_id=steady["process_id"].min()) if steady.height else steady
        times, where = (own["end_ns"] - own["start_ns"]).to_numpy(), ", profiled"
    if times.size < FEWEST or times.sum() <= 0:
        return
    if batch is not None:
        interval = mean_interval(times)
        rates = None if interval is None else tuple(1e9 * batch.size / end for end in reversed(interval))
        about = f"{batch.about}; {counted(times.size, 'steady step')}{where}"
        low_high = None if rates is None else (rates[0], rates[1])
        yield Measure("samples_per_second", 1e9 * batch.size / float(times.mean()), about, times.size, low_high)
    if _only_applies(trace, steps):
        call = "from call to call" if steps is not None else "of a step"
        taken = f", {batch.about}" if batch is not None else ""
        about = f"{call}{taken}; {counted(times.size, 'call')}{where}"
        yield from (quantile(key, times, share, about) for key, share, fewest in LATENCIES if times.size >= fewest)


def _stated(trace: TraceView, key: str) -> str | None:
    """Return the setting ``key`` of the process that trains."""
    main = main_process(trace)
    rows = trace.frame("settings", "process_id", "key", "value")
    own = rows.filter((pl.col("process_id") == main.process_id) & (pl.col("key") == key)) if main else rows.head(0)
    return str(own["value"][-1]) if own.height else None


def _only_applies(trace: TraceView, steps: RunSteps | None) -> bool:
    """Return whether the program applies a model, and nothing shows that it learns."""
    kind = capture_kind(trace).key
    if kind == "training" or (steps is not None and steps.learns):
        return False
    if steps is None:
        return kind in _INFERENCE
    gradients = _stated(trace, LEARNS)  # ``None`` if there were no hooks
    if gradients is not None or re.match(_WATCHED, steps.source):
        return gradients == "0"
    functions = trace.frame("stack_frames", pl.col("function").cast(pl.String).unique())["function"]
    return not functions.str.contains(_LEARNING).any()
