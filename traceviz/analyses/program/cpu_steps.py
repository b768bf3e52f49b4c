"""Computing of programs without a device: the time of their steps by family of operators and kind of other work.

Without a device, the host computes, and its work is no wait. Each nanosecond of the judged time belongs to the
innermost event that explains it (:mod:`traceviz.analyses.derived.causes`). Operators are then grouped by what they
compute, so that the rows add up to the judged time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.calls.op_names import op_groups
from traceviz.analyses.derived.calls.short_names import shortened
from traceviz.analyses.derived.capture.kind import find_run_trouble, nothing_says_what_lanes_are, uses_unseen_devices
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.causes.kinds import KIND_LABELS, OPTIMIZER, KindKey
from traceviz.analyses.derived.causes.places import PLACES, located
from traceviz.analyses.derived.frames import having
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.stacks.functions import line_words, without_module
from traceviz.analyses.derived.statistics import CALLS, frame_grid, share
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import format_ratio
from traceviz.report import STEADY_STEP_TIME, Bar, Bars, Block, Column, Fact, Facts, Finding, Section, Skipped
from traceviz.report.findings.record import ERROR_SHARE
from traceviz.report.findings.registry import record_of
from traceviz.trace.names.op_families import UNKNOWN, op_family_label

OF_OPERATORS: frozenset[KindKey] = frozenset({"operator", "optimizer"})
"""Kinds of causes that are operators of the framework."""
OF_THE_PROGRAM: frozenset[KindKey] = frozenset(
    {"python", "python_wait", "library", "native", "range", "runtime", "os_call"}
)
"""Kinds of the program's work other than computing with operators."""
_NAMED = 3
"""Most operators of a family that a sentence names."""
_WORTH_NAMING = 0.1
"""An operator is named if it has at least this share of its family's time."""
_WHOLE = ("attention", "recurrent")
"""Families whose operators call operators of other families."""
_BY_CLASS: dict[str, KindKey] = {
    "input_wait": "input",
    "communication": "host_collective",
    "compilation": "compilation",
    "profiler": "profiler",
}
"""Classes of step time that describe it better than the innermost event."""

BETWEEN_OPERATORS = "Between operators"
"""Label of time in ranges of a program whose operators were recorded."""

_WORDS: dict[str, str] = {
    "python": "Python functions",
    "range": "ranges with nothing more precise in them",
    "runtime": "the runtime",
    "python_wait": "Python functions that wait",
    "os_call": "calls of the operating system",
    "library": "libraries",
    "native": "native code",
}
_FUSE = "Fuse it with what is around. PyTorch: torch.compile; TensorFlow: tf.function(jit_compile=True)."
_IN_32_BITS = (
    "Train in 32 bits unless the program needs more: convert data of NumPy with .float() or astype('float32'), and "
    "leave torch.set_default_dtype at float32."
)
_WITHOUT_ONEDNN = (
    "These convolutions run without oneDNN, PyTorch's fast path on CPUs: see torch.backends.mkldnn.is_available(), and "
    "use 32-bit floats and a build that has it."
)
_ADVICE: dict[str, str] = {
    "convolution": (
        "Use the CPU's wide units. PyTorch: model and inputs in memory_format=torch.channels_last, and bfloat16 "
        "(torch.autocast('cpu')) where the CPU has AMX or AVX-512 BF16; TensorFlow: TF_ENABLE_ONEDNN_OPTS=1 and "
        "mixed_bfloat16."
    ),
    "matmul": (
        "Larger products use more cores: larger batches, several products in one. PyTorch: bfloat16 "
        "(torch.autocast('cpu')) where the CPU has AMX or AVX-512 BF16; TensorFlow: mixed_bfloat16; JAX: bfloat16 "
        "parameters."
    ),
    "attention": "PyTorch: scaled_dot_product_attention in bfloat16, which fuses what attention computes.",
    "recurrent": "Recurrent layers compute step by step: larger batches, and sequences of like length together.",
    "optimizer": "PyTorch: fused=True (or foreach=True) of the optimizer.",
    "embedding": "PyTorch: sparse=True of nn.Embedding, and EmbeddingBag in place of Embedding and a sum.",
    "movement": "Copy less: one type and one layout of memory through the step; write into tensors that exist.",
    "elementwise": _FUSE,
    "normalisation": _FUSE,
    "activation": _FUSE,
    "random": "Draw less: random numbers for the input in the loader's workers, one mask for several layers.",
    "python": (
        "TensorFlow: operators of TensorFlow in place of tf.py_function and tf.numpy_function, which run one by one."
    ),
}
"""Advice about families of operators, placed before that of the rule."""


@dataclass(frozen=True, slots=True)
class CpuSteps:
    """Judged time of a program without devices by family or cause, over all processes.

    Args:
        groups: ``group`` (a family, or a kind of cause), ``kind`` (``operator`` for families), ``label``, ``time_ns``,
            ``calls``, ``largest`` (the operator or event with most of it), ``largest_ns``, and its place; the largest
            first. Times add up to ``judged_ns``.
        operators: ``group, label, type, time_ns, calls`` of operators, the largest first.
        judged_ns: Judged time, summed over processes.
        judged_words: Text that names the judged time.
        sampled: True if stacks were sampled. Lines are then those that ran.
        is_double: True if the parameters that the program trains have 64 bits.
    """

    groups: pl.DataFrame
    operators: pl.DataFrame
    judged_ns: int
    judged_words: str
    sampled: bool = False
    is_double: bool = False

    @property
    def precision_words(self) -> str:
        """Clause on the precision of the parameters, if it is unusual: *in 64-bit floats*; empty otherwise."""
        return " in 64-bit floats" if self.is_double else ""

    def largest(self, kinds: frozenset[KindKey]) -> dict[str, Any] | None:
        """Return the group of these kinds with most time: a row of ``groups``; ``None`` if there is none."""
        of_kinds = self.groups.filter(pl.col("kind").is_in(list(kinds)))
        return of_kinds.row(0, named=True) if of_kinds.height else None


@dataclass(frozen=True, slots=True)
class CpuStepsAnalysis(Analysis[CpuSteps]):
    """The time of a program on the host by family of operators and kind of work.

    Args:
        group_share: A family of operators, or a kind of other work, is named from this share of the judged time on.
        fold_below: Rows below this share fold into "other" in pictures, never in data.
    """

    slug = "cpu_steps"
    title = "What the CPU computes"
    rules = ("TV606", "TV607")

    group_share: float = ERROR_SHARE
    fold_below: float = 0.01

    def run(self, trace: TraceView) -> CpuSteps | Skipped:
        """Divide the judged time among families of operators and kinds of other work."""
        if trace.rank_busy or trace.api_calls("launch").height or uses_unseen_devices(trace):
            return self.skipped("the program uses a device")
        if trouble := find_run_trouble(trace):
            return self.skipped(trouble)
        judged_ns = sum(judged_time(trace, rank).total for rank in trace.ranks)
        causes = host_causes(trace)
        if not judged_ns or not causes.filter(pl.col("kind") != "unexplained").height:
            return self.skipped("nothing of the host was recorded")
        if nothing_says_what_lanes_are(trace):
            return self.skipped("nothing says what its lanes are")
        grouped = _with_groups(causes)
        sampled = bool(trace.tables.rows("stacks"))
        of_operators = having(grouped, "kind", "operator").group_by("group", "label", "type")
        operators = of_operators.agg(pl.col("time_ns", "calls").sum())
        operators = operators.sort("time_ns", "type", "group", descending=[True, False, False])
        words = judged_words(trace)
        return CpuSteps(_groups(grouped), operators, judged_ns, words, sampled, is_double(trace))

    def judge(self, result: CpuSteps) -> tuple[Finding, ...]:
        """Return TV606 for the operators that take the time, and TV607 for other work of the program."""
        rules: tuple[tuple[str, frozenset[KindKey]], ...] = (("TV606", OF_OPERATORS), ("TV607", OF_THE_PROGRAM))
        found = [(code, largest) for code, kinds in rules if (largest := result.largest(kinds)) is not None]
        found = [(code, row) for code, row in found if row["time_ns"] >= self.group_share * result.judged_ns]
        found.sort(key=lambda pair: -pair[1]["time_ns"])
        return tuple(_finding(result, code, row) for code, row in found)

    def describe(self, result: CpuSteps) -> Section:
        """Describe groups as one stacked bar and as a table, then the operators."""
        whole = result.judged_ns
        bars = tuple(
            Bar(group, label, time, time / whole)
            for group, label, time in result.groups[["group", "label", "time_ns"]].iter_rows()
        )
        covered = result.groups.filter(pl.col("kind").is_in(list(OF_OPERATORS)))["time_ns"].sum()
        facts = (
            Fact("judged_ns", result.judged_words, whole, "ns"),
            Fact("operator_share", "in operators", int(covered) / whole, "ratio"),
        )
        of = "steps" if result.judged_words == STEADY_STEP_TIME else "time"
        of_judged = Column("share_of_judged", f"Of {of}", "ratio", 0, bar=True)
        groups = (
            Column("label", "What", "text", 0),
            Column("time_ns", "Time", "ns", 0),
            of_judged,
            CALLS,
            Column("largest", "Most of it", "text", 1),
            Column("largest_ns", "Of it", "ns", 2),
            Column("where", "In", "text", 3),
            Column("group", "Key", "text", 9),
            Column("kind", "Kind", "text", 9),
        )
        operators = (
            Column("type", "Operator", "text", 0),
            Column("label", "Family", "text", 2),
            CALLS,
            Column("time_ns", "Time", "ns", 0),
            of_judged,
        )
        part = share("time_ns", whole, "share_of_judged")
        blocks: tuple[Block, ...] = (
            Facts(facts),
            Bars("By what is computed", result.judged_words, "ns", bars),
            frame_grid(
                groups,
                result.groups.with_columns(*(without_module(pl.col(name)) for name in ("largest", "where")), part),
                fold_below=self.fold_below,
            ),
        )
        if result.operators.height:
            rows = result.operators.with_columns(part)  # host_waits shows them with their places to readers
            blocks = (*blocks, frame_grid(operators, rows, "Operators", audience="machine"))
        return Section(self.slug, self.title, blocks)


_BITS = "process.parameter_bits"
"""Setting of a process: bits of the parameters that it trains."""


def is_double(trace: TraceView) -> bool:
    """Return whether a process trains parameters of 64 bits, as hooks in it saw."""
    settings = trace.frame("settings", pl.col("key", "value").cast(pl.String))
    return bool(((settings["key"] == _BITS) & (settings["value"] == "64")).fill_null(value=False).any())


def _with_groups(causes: pl.DataFrame) -> pl.DataFrame:
    """Return causes with their ``group`` (family of operators, else the kind), its ``label``, and operators' ``type``.

    Operators called by an optimizer belong to the optimizer. Products of matrices within attention and recurrent layers
    belong to these layers. The ``kind`` of all of them is ``operator``.
    """
    is_operator = pl.col("kind") == "operator"
    computing = causes.filter(is_operator)  # other names have no family
    known = op_groups(pl.concat([computing["cause"], causes["operator"]]).drop_nulls())
    outer = known.select(pl.col("text").alias("operator"), pl.col("family").alias("outer"))
    joined = causes.join(known, left_on="cause", right_on="text", how="left", maintain_order="left")
    joined = joined.join(outer, on="operator", how="left", maintain_order="left")
    of_class = pl.col("class").replace_strict(_BY_CLASS, default=None, return_dtype=pl.String)
    frame = pl.when(pl.col("kind") == "python").then(located(pl.col("cause")))  # same format as places
    joined = joined.with_columns(
        pl.coalesce(of_class, "kind").alias("kind"), pl.coalesce(frame, "cause").alias("cause")
    )
    of_optimizer = (pl.col("kind") == "optimizer") | (is_operator & pl.col("range").str.contains(OPTIMIZER))
    family = (
        pl.when(of_optimizer)
        .then(pl.lit("optimizer"))
        .when(is_operator & pl.col("outer").is_in(_WHOLE))
        .then("outer")
        .when(is_operator)
        .then(pl.col("family").fill_null(UNKNOWN))
    )
    # The type of a fused operation only shows that it is fused, so its name counts, without its number.
    fused = pl.when(pl.col("family") == "fusion").then(pl.col("cause").str.replace(r"(\.\d+)+$", ""))
    grouped = joined.with_columns(
        pl.coalesce(family, "kind").alias("group"),
        pl.when(is_operator).then(pl.coalesce(fused, "type", "cause")).otherwise("cause").alias("type"),
        pl.when(family.is_not_null()).then(pl.lit("operator")).otherwise("kind").alias("kind"),
    )
    families = having(grouped, "kind", "operator")["group"].unique().to_list()
    kinds = {kind: f"{label[0].upper()}{label[1:]}" for kind, label in KIND_LABELS.items()}
    if families:  # operators are recorded, so that a range is the place of what runs between them
        kinds["range"] = BETWEEN_OPERATORS
    labels = {**kinds, **{family: op_family_label(family) for family in families}}
    label = pl.col("group").replace_strict(labels, default=None, return_dtype=pl.String)
    return grouped.with_columns(label.alias("label"))


def _groups(causes: pl.DataFrame) -> pl.DataFrame:
    """Return one row per group, the largest first, with the type of operator (or the event) that has most of it."""
    keys = ("kind", "group", "label")
    line = _else("location").str.extract(r"([^/]*)$", 1)
    places = pl.coalesce(line, "module", _else("range"), _else("operator"))
    placed = causes.with_columns(places.alias("where")).sort(
        "time_ns", *PLACES, descending=[True, *[False] * len(PLACES)]
    )
    types = placed.group_by(*keys, "type").agg(
        pl.col("time_ns", "calls").sum(), pl.col("where").first(), pl.col("time_ns").max().alias("most_ns")
    )
    types = types.sort("time_ns", "type", descending=[True, False])
    groups = types.group_by(keys, maintain_order=True).agg(
        pl.col("type").first().alias("largest"),
        pl.col("time_ns").first().alias("largest_ns"),
        pl.col("where").first(),
        pl.col("time_ns", "calls").sum(),
    )
    return groups.sort("time_ns", "group", descending=[True, False])


def _else(place: str) -> pl.Expr:
    """Return the place, unless it is the event itself."""
    return pl.when(pl.col(place) != pl.col("cause")).then(pl.col(place))


def _finding(result: CpuSteps, code: str, largest: dict[str, Any]) -> Finding:
    time_ns, label = largest["time_ns"], str(largest["label"])
    of_judged = format_ratio(time_ns / result.judged_ns)
    if code == "TV606":
        named = having(result.operators, "group", largest["group"]).head(_NAMED)
        parts = [
            f"{shortened(kind)} {format_ratio(time / result.judged_ns)}"
            for kind, time in named[["type", "time_ns"]].iter_rows()
            if kind is not None and time >= _WORTH_NAMING * time_ns
        ]
        takes = "take" if label.endswith("s") or " and " in label else "takes"
        base = f"{of_judged} of the {result.judged_words}{result.precision_words}"
        message = f"{label} {takes} {base}: {', '.join(parts)}."
        is_slow = str(largest["largest"]).startswith("aten::_slow_conv")
        own = _WITHOUT_ONEDNN if is_slow else _ADVICE.get(str(largest["group"]))
        lines = tuple(filter(None, [_IN_32_BITS if result.is_double else "", own]))
    else:
        where = f", in {shortened(largest['where'], line=result.sampled)}" if largest["where"] else ""
        name, part = (
            shortened(largest["largest"].strip("# "), line=result.sampled),
            largest["largest_ns"] / result.judged_ns,
        )
        most, lines = f"{name} ({format_ratio(part)}{where})", tuple[str, ...]()
        where = f"in {_WORDS[largest['kind']]}"
        if label == BETWEEN_OPERATORS:
            where = f"{label.lower()}, with nothing more precise recorded"
            lines = tuple(line for line in record_of(code).advice if line.startswith("Record"))
        message = f"{of_judged} of the {result.judged_words} is spent {where}, most of all in {most}."
    evidence = (
        Fact("group", "what", label),
        Fact("time_ns", "its time", time_ns, "ns"),
        Fact("share", f"of the {result.judged_words}", time_ns / result.judged_ns, "ratio"),
        Fact("largest", "most of it", line_words(largest["largest"]) if result.sampled else largest["largest"]),
        Fact("calls", "calls", largest["calls"], "count"),
    )
    # The possible gain is not known, because some work has to take the time.
    advice = tuple(dict.fromkeys((*lines, *record_of(code).advice)))
    return finding(code, message, evidence, 0, result.judged_ns, result.judged_words, advice=advice)
