"""Serving a language model: the engine's steps by phase, their requests and tokens, and how busy they keep the device.

::

    host      |------- annotation of a step -------|
    device           |##| |####|     |##|
              |<---->|                               host gap
              ........    .      .....  ............ device idle

If the host launches work in advance, a step is its device work. The host gap is then the time since the work of the
previous step.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis, known
from traceviz.analyses.derived.frames import parts_by
from traceviz.analyses.derived.statistics import frame_grid
from traceviz.analyses.derived.steps.engine import engine_steps
from traceviz.analyses.derived.steps.generate import ENGINE as GENERATE
from traceviz.analyses.derived.steps.generate import with_batches
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.serving import PHASES
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import counted, format_ns, format_number, format_ratio
from traceviz.report import Block, Column, Fact, Facts, Prose, Section, Skipped, hide_columns

NO_ENGINE = "the trace has no steps of a serving engine (vLLM, SGLang, TensorRT-LLM, transformers)"


@dataclass(frozen=True, slots=True)
class ServingResult:
    """The steps of a serving engine; times in nanoseconds over all ranks.

    Args:
        engine: The engine.
        phases: One row per phase, in the order of :data:`traceviz.analyses.derived.steps.serving.PHASES`: ``phase,
            steps, requests`` (mean per step), ``tokens, total_ns, share, median_ns, tokens_per_s, busy_ns, busy_share,
            idle_ns, host_gap_ns`` (median), ``host_ns`` (median annotation). Unknown values are null.
        steps: One row per step, of the same figures.
        ranks: Processes that have steps.
        captured_ns: Captured time, counted once for each of them.
        ahead: True if the host launches work in advance, so that steps are device work.
        outside: The API function in which the engine's threads spend at least half of the time outside of steps, and
            that time; ``None`` if there is no such function, or if steps take most of the captured time.
        mostly: If steps take at least this share of the captured time, reports do not name the rest.
    """

    engine: str
    phases: pl.DataFrame
    steps: pl.DataFrame
    ranks: int
    captured_ns: int
    ahead: bool
    outside: tuple[str, int] | None
    mostly: float

    @property
    def step_ns(self) -> int:
        """Time in steps."""
        return int(self.phases["total_ns"].sum())

    @property
    def busy_share(self) -> float | None:
        """Share of the steps in which a device works; ``None`` if no device work was recorded."""
        busy = self.phases["busy_ns"].drop_nulls()
        return int(busy.sum()) / self.step_ns if busy.len() and self.step_ns else None

    @property
    def covered(self) -> float | None:
        """Share of the captured time in steps."""
        return self.step_ns / self.captured_ns if self.captured_ns else None

    @property
    def alike(self) -> bool:
        """True if all ranks did the same steps, as for one model that is spread over them."""
        what = ("phase", "prompts", "running", "prompt_tokens", "new_tokens")
        parts = [part.sort("step").select(what) for part in parts_by(self.steps, "process_id").values()]
        return all(part.equals(parts[0]) for part in parts)

    @property
    def host_ns(self) -> int:
        """Median duration of the annotations."""
        return round(float(self.steps["host_ns"].median() or 0))  # type: ignore[arg-type]

    def sentence(self) -> str:
        """Return the sentence about the captured steps and how busy they kept the device."""
        each = self.ranks > 1 and self.alike
        # Ranks that did the same count once.
        of_one = self.phases.with_columns(pl.col("steps", "tokens") // self.ranks, pl.col("total_ns") / self.ranks)
        phases = list((of_one if each else self.phases).iter_rows(named=True))
        alone = len(phases) == 1
        on = " on the device" if self.ahead else ""
        parts = [
            f"{_words(row)}{', ' if alone else ' ('}{format_ns(row['total_ns'])}{on}{'' if alone else ')'}"
            for row in phases
        ]
        ranks = f" on {self.ranks:,} ranks{', each' if each else ', in all'}" if self.ranks > 1 else ""
        said = f"Serving with {self.engine}{ranks}: {_listed(parts)}"
        if self.busy_share is not None:
            whole = "it" if alone else "that time"
            said += f"; the device is busy in {format_ratio(self.busy_share)} of {whole}"
        return " ".join(filter(None, (f"{said}.", self.rest())))

    def rest(self) -> str:
        """Return the sentence about captured time outside of steps, if that is most of it."""
        if self.covered is None or self.covered >= self.mostly:
            return ""
        told = f"Steps take {format_ratio(self.covered)} of the captured time"
        if self.outside is None:
            return f"{told}."
        return f"{told}; outside of them the host is mostly in {self.outside[0]} ({format_ns(self.outside[1])})."


@dataclass(frozen=True, slots=True)
class ServingAnalysis(Analysis[ServingResult]):
    """Prefill and decode of a serving engine.

    Args:
        mostly: If steps take less than this share of the captured time, the report names the rest. A function with this
            share of the rest is named for it.
    """

    slug = "serving"
    title = "Serving"

    mostly: float = 0.5

    def run(self, trace: TraceView) -> ServingResult | Skipped:
        """Sum the engine's steps by phase."""
        found = engine_steps(trace)
        if found is None:
            return self.skipped(NO_ENGINE)
        frame = found.frame
        judged = training_steps(trace)
        if judged.source == "serving":
            frame = frame.join(judged.frame, on=("process_id", "step"), how="semi")
        if (frame["engine"] == GENERATE).any():
            frame = with_batches(trace, frame).sort("process_id", "start_ns")
        parts = []
        for process, part in parts_by(frame, "process_id").items():
            busy = trace.rank_busy.get(process)
            works = None if busy is None else busy.overlap(part["start_ns"].to_numpy(), part["end_ns"].to_numpy())
            busy_ns = [None] * part.height if works is None else works
            parts.append(part.with_columns(pl.Series("busy_ns", busy_ns, pl.Int64)))
        since = pl.col("start_ns") - pl.col("end_ns").shift(1).over("process_id")
        steps = pl.concat([*parts, frame.head(0).with_columns(pl.lit(None, pl.Int64).alias("busy_ns"))]).with_columns(
            (pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns"),
            (pl.col("call_end_ns") - pl.col("call_ns")).alias("host_ns"),
            pl.when("ahead").then(since).otherwise(pl.col("work_ns") - pl.col("call_ns")).alias("host_gap_ns"),
            pl.col("process_id").alias("process"),
        )
        if not steps.height:
            return self.skipped("the capture has no whole step of the engine")
        ranks = steps["process_id"].n_unique()
        return ServingResult(
            found.engine,
            _by_phase(steps),
            steps,
            ranks,
            ranks * trace.captured_ns,
            bool(steps["ahead"].any()),
            self._outside(trace, steps, ranks * trace.captured_ns),
            self.mostly,
        )

    def _outside(self, trace: TraceView, steps: pl.DataFrame, captured_ns: int) -> tuple[str, int] | None:
        """Return the function in which the threads of the engine spend most time outside of steps."""
        if int(steps["dur_ns"].sum()) >= self.mostly * captured_ns:
            return None
        calls, spent, left = trace.api_calls(*trace.api_names), [], 0
        for process, part in parts_by(steps, "process_id").items():
            inside = IntervalSet.of(part["start_ns"].to_numpy(), part["end_ns"].to_numpy())
            left += trace.captured_ns - inside.total
            own = calls.filter((pl.col("process_id") == process) & (pl.col("thread_id") == part["thread_id"][0]))
            within = pl.Series("inside", inside.overlap(own["start_ns"].to_numpy(), own["end_ns"].to_numpy()), pl.Int64)
            spent.append(
                own.select(pl.col("name").cast(pl.String), (pl.col("end_ns") - pl.col("start_ns") - within).alias("ns"))
            )
        sums = pl.concat(spent).group_by("name").agg(pl.col("ns").sum())
        most = (
            sums.filter((pl.col("ns") > 0) & (pl.col("ns") >= self.mostly * left))
            .sort("ns", "name", descending=[True, False])
            .head(1)
        )
        return (str(most["name"][0]), int(most["ns"][0])) if most.height else None

    def describe(self, result: ServingResult) -> Section:
        """Describe the engine, its phases, and every step for programs."""
        facts = (
            Fact("engine", "engine", result.engine),
            Fact("steps", "steps, all ranks" if result.ranks > 1 else "steps", result.steps.height, "count"),
            Fact("step_ns", "time in steps", result.step_ns, "ns"),
            Fact("covered_share", "of the captured time", result.covered, "ratio"),
            Fact("busy_share", "device busy in steps", result.busy_share, "ratio"),
            Fact("host_ns", "median step on the host", result.host_ns if result.ahead else None, "ns"),
            Fact("outside", "outside of steps mostly", result.outside and result.outside[0]),
            Fact("outside_ns", "time in that", result.outside and result.outside[1], "ns"),
        )
        remarks = []
        if result.ahead:
            remarks.append(
                "The host runs ahead of the device: a step is the device work that it launched, from the first to the "
                "last."
            )
        if result.ranks > 1:
            same = (
                "all of them did the same steps, as ranks of one model do" if result.alike else "each has its own steps"
            )
            remarks.append(f"Steps, tokens and times are sums over {result.ranks:,} ranks; {same}.")
        if result.phases["tokens"].null_count():
            remarks.append(
                "Requests and tokens are those that the names of the steps, or the shapes of their inputs, state."
            )
        unknown = {series.name for series in result.phases if series.null_count() == series.len()}
        blocks: list[Block] = [
            Facts(known(facts)),
            frame_grid(hide_columns(_PHASES, unknown), result.phases),
            *(Prose(remark) for remark in remarks),
            frame_grid(_STEPS, result.steps, "Every engine step", audience="machine"),
        ]
        return Section(self.slug, self.title, tuple(blocks))


_PHASES = (
    Column("phase", "Phase", "text", 0),
    Column("steps", "Steps", "count", 0),
    Column("requests", "Requests/step", "number", 1),
    Column("tokens", "Tokens", "count", 1),
    Column("total_ns", "Time", "ns", 0, additive=True),
    Column("share", "Of step time", "ratio", 3, bar=True),
    Column("median_ns", "Median step", "ns", 0),
    Column("tokens_per_s", "Tokens/s", "number", 1),
    Column("busy_ns", "Device busy", "ns", 9),
    Column("busy_share", "Device busy", "ratio", 0),
    Column("idle_ns", "Device idle", "ns", 2),
    Column("host_gap_ns", "Host gap", "ns", 1),
    Column("host_ns", "Host median", "ns", 4),
)
_STEPS = (
    Column("step", "Step", "id", 0),
    Column("phase", "Phase", "text", 0),
    Column("prompts", "Prompts", "count", 1),
    Column("running", "Generating", "count", 1),
    Column("prompt_tokens", "Prompt tokens", "count", 1),
    Column("new_tokens", "New tokens", "count", 1),
    Column("start_ns", "Start", "ns", 1),
    Column("dur_ns", "Duration", "ns", 0, additive=True),
    Column("busy_ns", "Device busy", "ns", 0),
    Column("host_gap_ns", "Host gap", "ns", 2),
    Column("host_ns", "Host", "ns", 2),
    Column("process", "Process", "id", 2),
)


def _by_phase(steps: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with the columns of :attr:`ServingResult.phases`."""
    tokens = pl.col("prompt_tokens") + pl.col("new_tokens")
    total = pl.col("total_ns")
    sums = steps.group_by("phase").agg(
        pl.len().cast(pl.Int64).alias("steps"),
        (pl.col("prompts") + pl.col("running")).mean().alias("requests"),
        pl.when(tokens.null_count() == 0).then(tokens.sum()).alias("tokens"),
        pl.col("dur_ns").sum().alias("total_ns"),
        pl.col("dur_ns").median().alias("median_ns"),
        pl.when(pl.col("busy_ns").null_count() == 0).then(pl.col("busy_ns").sum()).alias("busy_ns"),
        pl.col("host_gap_ns").median(),
        pl.col("host_ns").median(),
    )
    order = pl.col("phase").replace_strict(dict(zip(PHASES, range(len(PHASES)), strict=True)))
    return sums.sort(order).with_columns(
        (total / total.sum()).alias("share"),
        (pl.col("tokens") / total * 1e9).alias("tokens_per_s"),
        (pl.col("busy_ns") / total).alias("busy_share"),
        (total - pl.col("busy_ns")).alias("idle_ns"),
    )


def _words(phase: dict[str, object]) -> str:
    """Describe a phase as text: ``1 prefill step of 888 tokens``, ``20 decode steps of 32 requests``."""
    steps = counted(int(str(phase["steps"])), f"{phase['phase']} step")
    tokens, requests = phase["tokens"], phase["requests"]
    if phase["phase"] in {"prefill", "mixed"} and isinstance(tokens, int):
        return f"{steps} of {counted(tokens, 'token')}"
    if phase["phase"] in {"prefill", "mixed", "decode"} and isinstance(requests, float):
        noun = "request" if requests == 1 else "requests"
        return f"{steps} of {format_number(requests)} {noun}"
    return steps


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
