"""Report on all traces of an archive: the first report that a team reads."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from traceviz.analyses.derived.statistics import rows_of
from traceviz.archive.catalogue.segments import ready
from traceviz.archive.population.observations import FIGURES, Figure, date, figure, with_runs
from traceviz.archive.population.outliers import LEAST, SCORE, outliers
from traceviz.core.units import counted, format_ns, format_ratio, format_value
from traceviz.report import (
    POPULATION,
    Bar,
    Bars,
    Block,
    Column,
    Fact,
    Facts,
    Grid,
    Prose,
    Report,
    Row,
    Section,
    Verdict,
)
from traceviz.report.findings.registry import records
from traceviz.report.verdicts import VerdictCode

_LARGEST = ("gpu_stake_ns", "stake_ns")
"""Columns that order findings. Without a device, only the second decides."""


def with_times(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ``span_ns`` (0 if unknown), ``gpu_ns`` (``span_ns`` times the number of devices), and ``run``.

    A row is a rank with its own devices, so each rank of a job counts once.
    """
    span, devices = pl.col("span_ns").fill_null(0), pl.col("devices").fill_null(0)
    return with_runs(rows.with_columns(span.alias("span_ns"), (span * devices).alias("gpu_ns")))


def at_stake(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the findings of all rows by code, the most expensive first.

    The stake of a finding in a row is at most its share of the recorded time, or that time if it has no share. The
    bound is needed for processes with several devices: reports may sum the losses of all devices, but the share is per
    device. If the ranks of a run communicate, they wait for the rank with the largest stake. Its stake then counts for
    every rank, except for findings on the waiting itself. Stakes of different findings may overlap, so they are never
    summed.

    Args:
        rows: The result of :func:`with_times`.

    Returns:
        Columns ``code``, ``name``, ``traces``, ``ranks``, ``errors`` (rows in which the finding is an error),
        ``stake_ns``, ``gpu_stake_ns`` (of all devices that were in use), ``worst`` (id of the trace with the largest
        stake).
    """
    findings = (
        rows.select("run", "trace_id", "rank", "span_ns", "devices", "findings")
        .explode("findings", empty_as_null=True, keep_nulls=False)
        .drop_nulls("findings")
        .unnest("findings")
    )
    share = pl.col("share").fill_null(1.0).sum().clip(0.0, 1.0)
    of_row = (
        findings.group_by("run", "trace_id", "rank", "code", "name", "span_ns", "devices")
        .agg(share, pl.col("stake_ns").fill_null(0).sum(), (pl.col("severity") == "error").any().alias("error"))
        .with_columns(pl.min_horizontal("stake_ns", _part("share", "span_ns")).alias("stake_ns"))
        .with_columns((pl.col("stake_ns") * pl.col("devices").fill_null(0)).alias("gpu_stake_ns"))
    )
    summed = (
        _of_runs(of_row, rows)
        .group_by("code", "name")
        .agg(
            *(pl.col(name).sum() for name in ("traces", "ranks", "errors", *reversed(_LARGEST))),
            pl.col("worst").sort_by(*_LARGEST, "worst", descending=[True, True, False]).first(),
        )
    )
    return summed.sort(*_LARGEST, "code", descending=[True, True, False])


def _part(share: str, time: str) -> pl.Expr:
    """Return a share of a time."""
    return (pl.col(share) * pl.col(time)).round().cast(pl.Int64)


def _of_runs(of_row: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the stake of a finding in each run, from the stakes in its ranks."""
    devices = pl.col("devices").fill_null(0)
    runs = rows.group_by("run").agg(
        (pl.col("communication") > 0).any().alias("waits"),
        pl.len().cast(pl.Int64).alias("run_ranks"),
        devices.sum().alias("run_devices"),
        pl.col("span_ns").sum().alias("run_ns"),
        pl.col("gpu_ns").sum().alias("run_gpu_ns"),
    )
    stakes = of_row.group_by("run", "code", "name").agg(
        pl.col("trace_id").n_unique().cast(pl.Int64).alias("traces"),
        pl.len().cast(pl.Int64).alias("ranks"),
        pl.col("error").sum().cast(pl.Int64).alias("errors"),
        pl.col("trace_id").sort_by("stake_ns", "trace_id", descending=[True, False]).first().alias("worst"),
        *(pl.col(name).sum() for name in _LARGEST),
        pl.col("stake_ns").max().alias("longest"),
        pl.col("share").max(),
    )
    of_ranks = [record.code for record in records() if record.is_of_ranks]
    others_wait = pl.col("waits") & ~pl.col("code").is_in(of_ranks)
    of_all = (("stake_ns", "run_ranks", "run_ns"), ("gpu_stake_ns", "run_devices", "run_gpu_ns"))
    return stakes.join(runs, on="run").with_columns(
        pl.when(others_wait)
        .then(pl.min_horizontal(pl.col("longest") * pl.col(count), _part("share", time)))
        .otherwise(pl.col(name))
        .alias(name)
        for name, count, time in of_all
    )


VERDICTS = tuple(
    code.text
    for code in (
        *(VerdictCode.HIGHLY_INPUT_BOUND, VerdictCode.MODERATELY_INPUT_BOUND, VerdictCode.POSSIBLY_INPUT_BOUND),
        *(VerdictCode.NOT_INPUT_BOUND, VerdictCode.SERVING, VerdictCode.CANNOT_JUDGE, VerdictCode.PARTIAL),
    )
)
"""Verdicts of reports as named in the catalogue, the worst first."""
_WORST_BY = ("input_share", "launch_bound", "exposed_api_ns")
"""Figures by which the worst traces are listed."""
_BOUND = (VerdictCode.HIGHLY_INPUT_BOUND.text, VerdictCode.MODERATELY_INPUT_BOUND.text)
_UNKNOWN = (VerdictCode.CANNOT_JUDGE.text, VerdictCode.PARTIAL.text)


def population(catalogue: pl.DataFrame, top: int = 10) -> Report:
    """Return the report on a catalogue.

    Args:
        catalogue: Rows of :func:`traceviz.archive.catalogue.segments.read`, possibly filtered.
        top: Number of worst traces listed for each figure.
    """
    rows = with_times(ready(catalogue))
    refused = catalogue.filter(pl.col("state") == "quarantined")
    about = _about(catalogue, rows)
    left = (_quarantined_section(refused),) if refused.height else ()
    if not rows.height:
        count = refused["trace_id"].n_unique()
        why = "There is no trace that can be asked." + (f" {counted(count, 'trace')} quarantined." if count else "")
        return Report(about, Verdict(VerdictCode.EMPTY, why), left, schema=POPULATION)
    stakes = at_stake(rows)
    counts = _verdict_counts(rows)
    traces, title = sum(counts.values()), "Traces by the verdict of their report"
    bars = tuple(Bar(name, name, count, count / traces) for name, count in counts.items())
    sections = (
        Section("population", "What it holds", tuple(_holds(rows))),
        Section("verdicts", "Verdicts", (Bars(title, counted(traces, "trace"), "count", bars),)),
        Section("at_stake", "Time at stake over all traces", tuple(_stakes(rows, stakes))),
        Section("worst", "Worst first", tuple(_worst(rows, figure(name), top) for name in _WORST_BY)),
        Section("outliers", "Outliers", tuple(_outliers(rows))),
        Section("coverage", "What was measured", tuple(_coverage(rows))),
        *left,
    )
    return Report(about, Verdict(VerdictCode.POPULATION, _sentence(rows, refused, stakes)), sections, schema=POPULATION)


def _about(catalogue: pl.DataFrame, rows: pl.DataFrame) -> tuple[Fact, ...]:
    traces, runs = rows["trace_id"].n_unique(), rows["run"].n_unique()
    states = dict(catalogue.group_by("state").agg(pl.col("trace_id").n_unique()).iter_rows())
    devices = _device_time(rows)
    first, last = (date(_whole(end)) for end in (rows["recorded_ns"].min(), rows["recorded_ns"].max()))
    return (
        Fact(
            "source", "archive", f"{counted(traces, 'trace')} of {counted(runs, 'run')}{_recorded_between(first, last)}"
        ),
        Fact("traces", "traces", traces, "count"),
        Fact("ranks", "ranks", rows.height, "count"),
        Fact("runs", "runs", runs, "count"),
        Fact("quarantined", "quarantined", states.get("quarantined", 0), "count"),
        Fact("removed", "removed", states.get("removed", 0), "count"),
        Fact("first", "recorded from", first),
        Fact("last", "recorded to", last),
        Fact("recorded_ns", "recorded time", int(rows["span_ns"].sum()), "ns"),
        Fact("gpu_ns", f"recorded {devices}", int(rows["gpu_ns"].sum()), "ns"),
    )


def _recorded_between(first: str | None, last: str | None) -> str:
    if first is None or last is None:
        return ""
    return f", recorded on {first}" if first == last else f", recorded {first} to {last}"


def _device_time(rows: pl.DataFrame) -> str:
    """Return the name of the summed time of all devices: GPU time if all are GPUs."""
    return "device time" if rows["gpu"].str.contains("TPU").any() else "GPU time"


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _sentence(rows: pl.DataFrame, refused: pl.DataFrame, stakes: pl.DataFrame) -> str:
    """Return a sentence on how many traces wait for input, and the most that fixing one finding can save."""
    left_out = refused["trace_id"].n_unique()
    verdicts = _verdict_counts(rows)
    traces, bound = sum(verdicts.values()), sum(verdicts.get(name, 0) for name in _BOUND)
    possibly = verdicts.get(VerdictCode.POSSIBLY_INPUT_BOUND.text, 0)
    unknown = sum(verdicts.get(name, 0) for name in _UNKNOWN)
    serving = verdicts.get(VerdictCode.SERVING.text, 0)
    parts = [f"{bound:,} of {counted(traces, 'trace')} {'waits' if bound == 1 else 'wait'} for input"]
    parts += [f"{possibly:,} more may"] if possibly else []
    parts += [f"{unknown:,} cannot be judged"] if unknown else []
    parts += [f"{serving:,} {'serves' if serving == 1 else 'serve'} a model"] if serving else []
    others = f"{counted(left_out, 'other')} could not be read." if left_out else ""
    return " ".join(filter(None, (f"{', '.join(parts)}.", others, _largest(rows, stakes))))


def _largest(rows: pl.DataFrame, stakes: pl.DataFrame) -> str:
    """Return ``Most is at stake by pageable-copies (TV303, 18 traces): fixing it would save at most 31.0 h of ...``."""
    gpu_ns = int(rows["gpu_ns"].sum())
    whole, column, noun = (
        (gpu_ns, "gpu_stake_ns", _device_time(rows)) if gpu_ns else (int(rows["span_ns"].sum()), "stake_ns", "time")
    )
    if not whole or not stakes.height or not stakes[column][0]:
        return ""
    stake, traces = int(stakes[column][0]), counted(stakes["traces"][0], "trace")
    return (
        f"Most is at stake by {stakes['name'][0]} ({stakes['code'][0]}, {traces}): fixing it would save at most "
        f"{format_ns(stake)} of {format_ns(whole)} of {noun} recorded ({format_ratio(stake / whole)})."
    )


def _verdict_counts(rows: pl.DataFrame) -> dict[str, int]:
    """Count traces by verdict, the worst first. A trace of several ranks counts with its worst verdict."""
    order = {name: position for position, name in enumerate(VERDICTS)}
    verdict = pl.col("verdict").fill_null(VerdictCode.CANNOT_JUDGE.text)
    position = verdict.replace_strict(order, default=len(order))
    worst = rows.group_by("trace_id").agg(verdict.sort_by(position).first())
    counts = dict(worst.group_by("verdict").len().iter_rows())
    return dict(sorted(counts.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))


_NO_DEVICE, _NO_MODEL = "no device recorded", "model not stated"
_KINDS = (
    ("format", "Formats", pl.lit("not known")),
    ("framework", "Frameworks", pl.lit("not stated")),
    ("gpu", "Devices", pl.when(pl.col("devices") > 0).then(pl.lit(_NO_MODEL)).otherwise(pl.lit(_NO_DEVICE))),
)
"""Columns by which traces are counted, with the label of a missing value."""


def _holds(rows: pl.DataFrame) -> Iterator[Block]:
    has_gpus = bool(rows["gpu_ns"].sum())
    columns = (
        Column("kind", "", "text", 9),
        Column("name", "Name", "text", 0),
        Column("traces", "Traces", "count", 0),
        Column("ranks", "Ranks", "count", 2),
        Column("recorded_ns", "Recorded", "ns", 1),
        Column("gpu_ns", _device_time(rows).replace("device", "Device"), "ns", 1 if has_gpus else 9),
    )
    for kind, title, absent in _KINDS:
        counted_rows = rows.group_by(pl.col(kind).fill_null(absent).alias("name")).agg(
            pl.lit(kind).alias("kind"),
            pl.col("trace_id").n_unique().cast(pl.Int64).alias("traces"),
            pl.len().cast(pl.Int64).alias("ranks"),
            pl.col("span_ns").sum().alias("recorded_ns"),
            pl.col("gpu_ns").sum(),
        )
        ordered = counted_rows.sort("traces", "name", descending=[True, False])
        yield Grid(columns, rows_of(ordered, tuple(column.name for column in columns)), title)


def _stakes(rows: pl.DataFrame, stakes: pl.DataFrame) -> Iterator[Block]:
    gpu_ns, span_ns, devices = int(rows["gpu_ns"].sum()), int(rows["span_ns"].sum()), _device_time(rows)
    columns = (
        Column("code", "Code", "text", 1),
        Column("name", "Finding", "text", 0),
        Column("traces", "Traces", "count", 0),
        Column("ranks", "Ranks", "count", 9),
        Column("errors", "Errors", "count", 9),
        Column("gpu_stake_ns", f"{devices.replace('device', 'Device')} at most", "ns", 0 if gpu_ns else 9),
        Column("share_of_gpu", "Of all", "ratio", 0 if gpu_ns else 9, additive=True),
        Column("stake_ns", "Time at most", "ns", 3 if gpu_ns else 0),
        Column("share_of_recorded", "Of recorded", "ratio", 9 if gpu_ns else 1, additive=True),
        Column("trace_id", "Most in trace", "text", 2, shorten=False),
    )
    lines = tuple(
        (
            *(code, name, traces, ranks, errors),
            *(gpu or None, gpu / gpu_ns if gpu else None),
            *(stake or None, stake / span_ns if stake else None, worst),
        )
        for code, name, traces, ranks, errors, stake, gpu, worst in stakes.iter_rows()
    )
    yield Grid(columns, lines)
    counts = f"{devices.replace('device', 'Device')} counts every device of every rank. "
    yield Prose(
        "Upper bounds of what was recorded; jobs ran longer. Stakes of one trace may overlap, so they do not add up. "
        f"{counts if gpu_ns else ''}Why, and when a finding misleads: traceviz explain CODE."
    )


def _worst(rows: pl.DataFrame, by: Figure, top: int) -> Grid:
    label = by.name.removesuffix("_ns").replace("_", " ").capitalize().replace("api", "API")
    columns = (
        Column("trace_id", "Trace", "text", 0, shorten=False),
        Column("rank", "Rank", "id", 2),
        Column("source", "Source", "text", 0),
        Column("framework", "Framework", "text", 4),
        Column(by.name, label, by.unit, 0, bar=by.unit == "ratio"),
        *((Column("step_median", "Median step", "ns", 1),) if by.name != "step_median" else ()),
        Column("verdict", "Verdict", "text", 3, shorten=False),
    )
    names = [column.name for column in columns]
    worst = rows.filter(pl.col(by.name) > 0).sort(by.name, "trace_id", "rank", descending=[True, False, False])
    return Grid(
        columns,
        rows_of(worst.head(top), tuple(names)),
        f"By {by.name}: {by.meaning[:1].lower() + by.meaning[1:] if by.meaning[1:2].islower() else by.meaning}",
        complete=True,
    )


def _outliers(rows: pl.DataFrame) -> Iterator[Block]:
    """Yield a table for people (one row per trace and rank, with its most extreme figure), and one for programs."""
    scores = outliers(rows)
    columns = (
        Column("trace_id", "Trace", "text", 0, shorten=False),
        Column("rank", "Rank", "id", 2),
        Column("source", "Source", "text", 1),
        Column("metric", "Figure", "text", 0),
        Column("shown", "Is", "text", 0),
        Column("shown_median", "Median", "text", 2),
        Column("score", "Score", "number", 0, signed=True),
        Column("among", "Among", "text", 2),
        Column("like", "Of", "count", 4),
        Column("others", "Other figures", "count", 3),
        Column("value", "Value", "number", 9),
        Column("median", "Median", "number", 9),
    )
    others = (pl.len().over("trace_id", "rank") - 1).cast(pl.Int64).alias("others")
    counted_scores = scores.with_columns(others)
    furthest = counted_scores.unique(["trace_id", "rank"], keep="first", maintain_order=True)
    yield Grid(columns, tuple(_outlier(row) for row in furthest.iter_rows(named=True)))
    yield Grid(
        columns,
        tuple(_outlier(row) for row in counted_scores.iter_rows(named=True)),
        "Every figure",
        audience="machine",
    )
    yield Prose(
        f"Modified z-scores beyond {SCORE:g}, the nearest kin first: among {LEAST} ranks or more of the same job and "
        "tags; shares also among those of the same framework and GPU, or all."
    )


def _outlier(row: dict[str, object]) -> Row:
    name, value, median, score = (row[key] for key in ("figure", "value", "median", "score"))
    assert isinstance(value, float)
    assert isinstance(median, float)
    assert isinstance(score, float)
    unit = figure(str(name)).unit
    return (
        *(str(row["trace_id"]), _whole(row["rank"]), str(row["source"]), str(name)),
        *(format_value(value, unit), format_value(median, unit), round(score, 1)),
        *(str(row["among"]), _whole(row["like"]), _whole(row["others"]), value, median),
    )


def _coverage(rows: pl.DataFrame) -> Iterator[Block]:
    """Yield how often each figure was measured. A missing figure must not look like a good one."""
    unknown = sum(_verdict_counts(rows).get(name, 0) for name in _UNKNOWN)
    yield Facts((Fact("cannot_judge", "traces whose input pipeline cannot be judged", unknown, "count"),))
    columns = (
        Column("metric", "Figure", "text", 0),
        Column("meaning", "What it is", "text", 3),
        Column("measured", "Measured", "count", 0),
        Column("not_measured", "Not measured", "count", 0),
        Column("share_measured", "Share", "ratio", 0),
    )
    measured = rows.select(pl.col(known.name).count() for known in FIGURES).row(0)
    ordered = sorted(zip(measured, FIGURES, strict=True), key=lambda pair: pair[0])
    lines = tuple(
        (known.name, known.meaning, count, rows.height - count, count / rows.height) for count, known in ordered
    )
    yield Grid(columns, lines, "Ranks by figure, the least known first")


def _quarantined_section(refused: pl.DataFrame) -> Section:
    """Return the reasons with their counts, and an example in full."""
    columns = (
        Column("reason", "Reason", "text", 0),
        Column("traces", "Traces", "count", 0),
        Column("source", "For example", "text", 0),
        Column("trace_id", "Trace", "text", 0, shorten=False),
        Column("error", "Why", "text", 9),
    )
    reason = pl.col("error").fill_null("").str.extract(r"^([a-z][a-z-]*):").fill_null("other").alias("reason")
    by_reason = (
        refused.sort("source", "trace_id")
        .group_by(reason)
        .agg(
            pl.col("trace_id").n_unique().cast(pl.Int64).alias("traces"),
            pl.col("source").first(),
            pl.col("error").first().str.replace(r"^[a-z][a-z-]*:\s*", ""),
            pl.col("trace_id").first(),
        )
        .sort("traces", "reason", descending=[True, False])
    )
    names = tuple(column.name for column in columns)
    why = tuple(Prose(f"{name}: {error}") for name, error in by_reason.select("reason", "error").iter_rows())
    return Section("quarantined", "Quarantined", (Grid(columns, rows_of(by_reason, names), complete=True), *why))
