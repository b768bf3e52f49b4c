"""A run that ``traceviz collect`` recorded: the command, its end, the machine, and the collectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import counted, format_ns, format_signal, format_value
from traceviz.report import TAG, Fact, Facts, Section, Skipped

_COST = "stop_cost_ns"
"""Key under which a collector states the time that the program waited for it to stop and save."""
_BUSY = frozenset({"recorded", "recording"})
"""States of collectors that wrote a recording, or may have."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The settings of a run by key: ``run.status``, ``tag.batch``, ``machine.cores`` and the like."""

    stated: Mapping[str, str]

    def whole(self, key: str) -> int | None:
        """Return the number under ``key``; ``None`` if there is none."""
        text = self.stated.get(key, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None

    def under(self, prefix: str) -> dict[str, str]:
        """Return the settings whose keys start with ``prefix``, by the rest of the key."""
        return {key.removeprefix(prefix): value for key, value in self.stated.items() if key.startswith(prefix)}

    @property
    def collectors(self) -> tuple[str, ...]:
        """Names of all collectors that the run considered."""
        keys = (key.partition(".") for key in self.under("collector."))
        return tuple(sorted(name for name, _, rest in keys if rest == "state"))

    @property
    def stop_cost_ns(self) -> int | None:
        """Time that the program waited for profilers to stop and save; ``None`` if no profiler states it."""
        return sum(self.whole(f"collector.{name}.{_COST}") or 0 for name in self.collectors) or None


@dataclass(frozen=True, slots=True)
class RunAnalysis(Analysis[RunFacts]):
    """The manifest of a run folder, for readers."""

    slug = "run"
    title = "Run"

    def run(self, trace: TraceView) -> RunFacts | Skipped:
        """Collect the settings that belong to no process."""
        rows = trace.frame("settings", "key", "value", "process_id").filter(pl.col("process_id").is_null())
        stated = dict(rows.select(pl.col("key", "value").cast(pl.String)).drop_nulls().iter_rows())
        return RunFacts(stated) if "run.status" in stated else self.skipped("the trace is not one of traceviz collect")

    def describe(self, result: RunFacts) -> Section:
        """Describe the run with facts only."""
        failed = [name for name in result.collectors if result.stated[f"collector.{name}.state"] == "failed"]
        gpus = [value for key, value in sorted(result.under("machine.gpus.").items()) if key.endswith(".name")]
        # A collector may have no recording of its own: ranges are in the recordings of others.
        recorded = [
            " ".join(filter(None, (name, result.stated.get(f"collector.{name}.version"))))
            for name in result.collectors
            if result.stated[f"collector.{name}.state"] in _BUSY or result.whole(f"collector.{name}.arrived")
        ]
        facts = (
            Fact("name", "name", result.stated.get("run.name")),
            Fact("tags", "tags", ", ".join(f"{key}={value}" for key, value in result.under("tag.").items()) or None),
            Fact("command", "command", result.stated.get("run.command")),
            Fact("status", "ended", _ending(result)),
            Fact("machine", "machine", _machine(result)),
            Fact("gpus", "GPUs", ", ".join(f"{gpus.count(gpu)} × {gpu}" for gpu in dict.fromkeys(gpus)) or None),
            Fact("software", "software", _software(result)),
            Fact("recorded_by", "recorded by", ", ".join(recorded) or None),
            Fact("without", "nothing from", ", ".join(failed) or None),
            Fact("stop_cost_ns", "stopping and saving took", result.stop_cost_ns, "ns"),
            Fact("duration_ns", "program ran", result.whole("run.duration_ns"), "ns"),
            Fact("exit_code", "exit code", result.whole("run.exit.code"), "id"),
        )
        machine = {"duration_ns", "exit_code"}  # the fact "ended" shows these to readers
        shown = tuple(fact for fact in facts if fact.value is not None and fact.key not in machine)
        tags = tuple(Fact(f"{TAG}{key}", key, value) for key, value in result.under("tag.").items())
        rest = (*(fact for fact in facts if fact.value is not None and fact.key in machine), *tags)
        return Section(self.slug, self.title, (Facts(shown), *((Facts(rest, audience="machine"),) if rest else ())))


def _ending(run: RunFacts) -> str:
    """Return ``killed by signal 9 (SIGKILL) after 12.3 s``, ``failed with exit code 1 (ValueError) after 12.3 s``."""
    status, code, number = run.stated["run.status"], run.whole("run.exit.code"), run.whole("run.exit.signal")
    if status == "running":
        return "not yet, or traceviz collect was killed"
    how = {
        "failed": f" with exit code {code}" if code is not None else "",
        "killed": f" by {format_signal(number)}" if number else "",
        "interrupted": f" by {format_signal(number)}" if number else "",
    }
    reason, lasted = run.stated.get("run.ending.reason", ""), run.whole("run.duration_ns")
    if status == "timed-out" and reason:
        return reason
    why = reason.partition(": ")[2] or (reason if " " in reason and "exit code" not in reason else "")
    after = f" after {format_ns(lasted)}" if lasted else ""
    return f"{status}{how.get(status, '')}{f' ({why})' if why else ''}{after}"


def _machine(run: RunFacts) -> str | None:
    """Return ``2 of 8 cores (AMD EPYC), 25.3 GB, docker``."""
    cores, usable, memory = (run.whole(f"machine.{key}") for key in ("cores", "usable_cores", "memory_bytes"))
    name, container = run.stated.get("machine.cpu"), run.stated.get("machine.container")
    counts = [f"{usable:,} of"] if usable and cores and usable != cores else []
    parts = [
        " ".join([*counts, counted(cores, "core"), *([f"({name})"] if name else [])]) if cores else name,
        format_value(memory, "bytes") if memory else None,
        container,
    ]
    return ", ".join(part for part in parts if part) or None


def _software(run: RunFacts) -> str | None:
    """Return ``Python 3.11.7, torch 2.12.1, CUDA 12.4, driver 550.54``, as far as the manifest states them."""
    versions = run.under("version.")
    names = ["python", *sorted(versions.keys() & _FRAMEWORKS), "cuda"]
    parts = [f"{_NAMES.get(name, name)} {versions[name]}" for name in names if name in versions]
    driver = run.stated.get("machine.driver")
    return ", ".join([*parts, *([f"driver {driver}"] if driver else [])]) or None


_FRAMEWORKS = frozenset({"jax", "keras", "mxnet", "paddle", "tensorflow", "tf_keras", "torch"})
"""Packages whose versions are shown; others stay in the manifest."""
_NAMES = {"python": "Python", "cuda": "CUDA"}
