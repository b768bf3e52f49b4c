"""The report as JSON, and back. Names are stable, so that scripts keep working with later versions.

Values stay in base units (ns, bytes, ratio 0 to 1). ``run`` is an object of plain values for scripts. ``run_facts``
holds the same facts with labels and units, so that nothing is lost on the way back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct, structs, to_builtins

from traceviz.core.errors import DamagedTraceError
from traceviz.core.sanitize import bounded
from traceviz.core.units import Unit, Value
from traceviz.render.options import RenderOptions, select
from traceviz.report import (
    COMPARISON,
    SCHEMA,
    Audience,
    Bar,
    Bars,
    Better,
    Block,
    Candidate,
    Claim,
    Column,
    Fact,
    Facts,
    Finding,
    Grid,
    Lane,
    Level,
    Note,
    Point,
    Prose,
    Report,
    Row,
    Section,
    Series,
    Severity,
    Skipped,
    Timeline,
    Verdict,
)
from traceviz.report.verdicts import VerdictCode
from traceviz.untrusted.json_documents import MOST_REPORT_BYTES, document_of

Object = dict[str, Any]
Number = int | float
"""A number as in the file: integers stay integers, so that a report is written back byte for byte."""
T = TypeVar("T")

_AGAIN = "Copy it again, or write it with `traceviz report TRACE --format json`."


class JsonRenderer:
    """The report for scripts: complete regardless of ``top``, and readable by :func:`loads`."""

    name: ClassVar[str] = "json"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render the document, indented, ended by a newline; width, colour and row limit have no effect."""
        return dumps(select(report, options.sections))


def dumps(report: Report) -> str:
    """Encode ``report`` as JSON text in ASCII.

    Raises:
        ValueError: a value is not a finite number; JSON cannot express it, and ``None`` means *not measured*.
    """
    document = _report(report)
    try:  # the encoder of the standard library is only compiled without indentation
        return msgspec.json.format(json.dumps(document, allow_nan=False), indent=1) + "\n"
    except msgspec.DecodeError:  # half of a surrogate pair, which msgspec takes for the end of the text
        return json.dumps(document, indent=1, allow_nan=False) + "\n"


def compact(report: Report) -> str:
    """Encode the report on one line of a page: no text can end the element, and texts have bounded length."""
    text = json.dumps(_bounded(_report(report)), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _bounded(value: Any) -> Any:
    """Shorten very long texts of an object to their start and end."""
    if isinstance(value, str):
        return bounded(value)
    if isinstance(value, dict):
        return {bounded(key): _bounded(item) for key, item in value.items()}
    return [_bounded(item) for item in value] if isinstance(value, list | tuple) else value


def loads(text: str) -> Report:
    """Read a report that :func:`dumps` wrote; ``loads(dumps(report)) == report``.

    Raises:
        DamagedTraceError: the text is not JSON, is of another schema, or lacks required parts.
    """
    try:
        document = document_of(text, most_bytes=MOST_REPORT_BYTES, constant=_refuse_constant, keep_halves=True)
    except ValueError as error:
        raise DamagedTraceError("This is not a JSON report.", f"The JSON parser says: {error}.", _AGAIN) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise _not_a_report(document.get("schema") if isinstance(document, dict) else None)
    try:
        return _read_report(msgspec.convert(document, _Document))
    except ValueError as error:
        raise DamagedTraceError("The JSON report breaks its schema.", f"{error}.", _AGAIN) from None


def _not_a_report(schema: object) -> DamagedTraceError:
    why = f"Its schema is {schema!r}." if schema is not None else "It names no schema."
    fix = _AGAIN
    if isinstance(schema, str) and schema.startswith(SCHEMA.rpartition("/")[0] + "/"):
        why = f"It is of {schema}, another version."
        fix = "Write it again from its trace, with this version of traceviz."
    if schema == COMPARISON:
        why, fix = "It is a comparison of reports.", "Name the traces or reports that it compared."
    return DamagedTraceError(f"This is not a report of schema {SCHEMA}.", why, fix)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


# Writing


def _plain(value: object) -> Any:
    """Convert a value of a dataclass to an object of its fields, in their order."""
    return to_builtins(value, enc_hook=_number)


def _number(value: object) -> Number:
    """Convert a NumPy number to a Python one."""
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"{type(value).__name__} is no value of a report")


def _report(report: Report) -> Object:
    return {
        "schema": report.schema,
        "verdict": _verdict(report.verdict),
        "run": {fact.key: fact.value for fact in report.run},
        "run_facts": [_plain(fact) for fact in report.run],
        "sections": [
            {"slug": s.slug, "title": s.title, "blocks": [_block(block) for block in s.blocks]} for s in report.sections
        ],
        "findings": [_finding(finding) for finding in report.findings],
        "skipped": [_plain(skip) for skip in report.skipped],
        "notes": [_plain(note) for note in report.notes],
    }


def _verdict(verdict: Verdict) -> Object:
    """Encode a verdict, without the fields of the headline if it has none, as that of a comparison."""
    absent = set() if verdict.headline else {"headline", "figure", "consequence", "caveats", "capture_parts"}
    return {key: value for key, value in _plain(verdict).items() if key not in absent}


def _finding(finding: Finding) -> Object:
    """Encode a finding; its heading only serves the verdict of the same report."""
    return {key: value for key, value in _plain(finding).items() if key != "heading"}


def _block(block: Block) -> Object:
    match block:
        case Facts():
            return {"type": "facts", "audience": block.audience, "facts": [_plain(fact) for fact in block.facts]}
        case Grid():
            names = [column.name for column in block.columns]
            return {
                "type": "grid",
                "title": block.title,
                "fold_below": block.fold_below,
                "audience": block.audience,
                **({"complete": True} if block.complete else {}),
                "columns": [_column(column) for column in block.columns],
                "rows": [dict(zip(names, row, strict=True)) for row in block.rows],
            }
        case Bars():
            return {"type": "bars", **_plain(block)}
        case Timeline():
            lanes = [
                {key: value for key, value in _plain(lane).items() if key != "parts" or value} for lane in block.lanes
            ]
            return {"type": "timeline", **_plain(block), "lanes": lanes}
        case Series():
            of_all = {"title": block.title, "unit": block.unit, "audience": block.audience}
            return {"type": "series", **of_all, **_plain(block)}
        case Prose():
            return {"type": "prose", **_plain(block)}


def _column(column: Column) -> Object:
    """Encode a column; only columns of changes have ``signed`` and ``better``, and none has hints for renderers."""
    omitted = {"additive", "shorten", "restates"} | (set() if column.signed else {"signed", "better"})
    return {key: value for key, value in _plain(column).items() if key not in omitted}


# Reading: structs in the shape of the document. msgspec checks every field, and reports the place of a wrong one.


class _Fact(Struct):
    key: str
    label: str
    value: Value
    unit: Unit


class _Facts(Struct, tag_field="type", tag="facts"):
    facts: list[_Fact]
    audience: Audience


class _Column(Struct):
    name: str
    label: str
    unit: Unit
    importance: int
    bar: bool
    signed: bool = False
    better: Better = ""


class _Grid(Struct, tag_field="type", tag="grid"):
    title: str
    fold_below: Number
    audience: Audience
    columns: list[_Column]
    rows: list[dict[str, Any]]
    complete: bool = False


class _Bar(Struct):
    key: str
    label: str
    value: Value
    share: Number


class _Bars(Struct, tag_field="type", tag="bars"):
    title: str
    whole: str
    unit: Unit
    bars: list[_Bar]


class _Lane(Struct):
    label: str
    values: tuple[Number | None, ...]
    whole: str = ""
    parts: tuple[tuple[str, str, tuple[float, ...]], ...] = ()


class _Timeline(Struct, tag_field="type", tag="timeline"):
    title: str
    start_ns: int
    end_ns: int
    lanes: list[_Lane]


class _Point(Struct):
    label: str
    value: Number | None


class _Level(Struct):
    start: int
    value: Number


class _Series(Struct, tag_field="type", tag="series"):
    title: str
    unit: Unit
    audience: Audience
    points: list[_Point]
    levels: list[_Level]


class _Prose(Struct, tag_field="type", tag="prose"):
    text: str


class _Section(Struct):
    slug: str
    title: str
    blocks: list[_Facts | _Grid | _Bars | _Timeline | _Series | _Prose]


class _Finding(Struct):
    code: str
    slug: str
    severity: Severity
    message: str
    evidence: list[_Fact]
    advice: tuple[str, ...]
    cost_ns: int
    share: Number | None
    share_of: str


class _Note(Struct):
    code: str
    severity: Severity
    message: str
    count: int | None


class _Verdict(Struct):
    code: str
    sentence: str
    cause: str = ""
    candidates: tuple[Candidate, ...] = ()
    parts: tuple[Claim, ...] = ()
    headline: str = ""
    figure: str = ""
    consequence: str = ""
    caveats: tuple[str, ...] = ()
    capture_parts: tuple[Claim, ...] = ()


class _Document(Struct):
    run_facts: list[_Fact]
    verdict: _Verdict
    sections: list[_Section]
    findings: list[_Finding]
    skipped: tuple[Skipped, ...]
    notes: list[_Note]


def _read_report(document: _Document) -> Report:
    return Report(
        run=_all(Fact, document.run_facts),
        verdict=Verdict(**{**structs.asdict(document.verdict), "code": VerdictCode(document.verdict.code)}),
        sections=tuple(
            Section(section.slug, section.title, tuple(_read_block(block) for block in section.blocks))
            for section in document.sections
        ),
        findings=tuple(
            Finding(**{**structs.asdict(finding), "evidence": _all(Fact, finding.evidence)})
            for finding in document.findings
        ),
        skipped=document.skipped,
        notes=_all(Note, document.notes),
    )


def _all(cls: type[T], items: Iterable[Struct]) -> tuple[T, ...]:
    """Convert structs to report values with the same fields."""
    return tuple(cls(**structs.asdict(item)) for item in items)


def _read_block(block: _Facts | _Grid | _Bars | _Timeline | _Series | _Prose) -> Block:
    match block:
        case _Facts():
            return Facts(_all(Fact, block.facts), block.audience)
        case _Grid():
            columns = _all(Column, block.columns)
            try:
                rows = [tuple(row[column.name] for column in columns) for row in block.rows]
            except KeyError as error:
                raise ValueError(f"A row of grid {block.title!r} lacks the column {error}") from None
            values = msgspec.convert(rows, tuple[Row, ...])
            return Grid(columns, values, block.title, block.fold_below, block.audience, block.complete)
        case _Bars():
            return Bars(block.title, block.whole, block.unit, _all(Bar, block.bars))
        case _Timeline():
            return Timeline(block.title, block.start_ns, block.end_ns, _all(Lane, block.lanes))
        case _Series():
            points, levels = _all(Point, block.points), _all(Level, block.levels)
            return Series(block.title, block.unit, points, levels, block.audience)
        case _Prose():
            return Prose(block.text)
