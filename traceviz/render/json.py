"""The report as JSON with stable names, and back: what a script reads today it can read tomorrow.

Values stay in base units (ns, bytes, ratio 0 to 1). ``run`` is an object of plain values for scripts;
``run_facts`` holds the same facts with labels and units, so that nothing is lost on the way back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar, get_args

from traceviz.errors import DamagedTraceError
from traceviz.render.options import RenderOptions, select
from traceviz.report import (
    COMPARISON,
    SCHEMA,
    Audience,
    Bar,
    Bars,
    Better,
    Block,
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
from traceviz.units import UNITS, Unit, Value

Object = dict[str, Any]
T = TypeVar("T")


_AGAIN = "Copy it again, or write it with `traceviz report TRACE --format json`."


class JsonRenderer:
    """The report for scripts: complete whatever ``top`` says, and readable by :func:`loads`."""

    name: ClassVar[str] = "json"

    def render(self, report: Report, options: RenderOptions) -> str:
        """The document, indented, ended by a newline; width, colour and row limit do not matter."""
        return dumps(select(report, options.sections))


def dumps(report: Report) -> str:
    """``report`` as JSON text in ASCII.

    Raises:
        ValueError: a value is not a finite number; JSON has no word for it, and ``None`` means *not measured*.
    """
    return json.dumps(_report(report), indent=1, allow_nan=False) + "\n"


def loads(text: str) -> Report:
    """The report that :func:`dumps` wrote; ``loads(dumps(report)) == report``.

    Raises:
        DamagedTraceError: the text is not JSON, is of another schema, or lacks what the schema demands.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise DamagedTraceError("This is not a JSON report.", f"The JSON parser says: {error}.", _AGAIN) from None
    except RecursionError:
        raise DamagedTraceError("This is not a JSON report.", "It is nested too deeply to be one.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise _not_a_report(document.get("schema") if isinstance(document, dict) else None)
    try:
        return _read_report(document)
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


# Writing


def _report(report: Report) -> Object:
    return {
        "schema": report.schema,
        "verdict": {"code": report.verdict.code, "sentence": report.verdict.sentence},
        "run": {fact.key: fact.value for fact in report.run},
        "run_facts": _facts(report.run),
        "sections": [
            {"slug": s.slug, "title": s.title, "blocks": [_block(block) for block in s.blocks]} for s in report.sections
        ],
        "findings": [_finding(finding) for finding in report.findings],
        "skipped": [{"slug": s.slug, "reason": s.reason, "tables": list(s.tables)} for s in report.skipped],
        "notes": [
            {"code": n.code, "severity": n.severity.value, "message": n.message, "count": n.count} for n in report.notes
        ],
    }


def _facts(facts: Iterable[Fact]) -> list[Object]:
    return [{"key": fact.key, "label": fact.label, "value": fact.value, "unit": fact.unit} for fact in facts]


def _finding(finding: Finding) -> Object:
    return {
        "code": finding.code,
        "slug": finding.slug,
        "severity": finding.severity.value,
        "message": finding.message,
        "evidence": _facts(finding.evidence),
        "advice": list(finding.advice),
        "cost_ns": finding.cost_ns,
        "share": finding.share,
        "share_of": finding.share_of,
    }


def _block(block: Block) -> Object:
    match block:
        case Facts():
            return {"type": "facts", "audience": block.audience, "facts": _facts(block.facts)}
        case Grid():
            return _grid(block)
        case Bars():
            bars = [{"key": b.key, "label": b.label, "value": b.value, "share": b.share} for b in block.bars]
            return {"type": "bars", "title": block.title, "whole": block.whole, "unit": block.unit, "bars": bars}
        case Timeline():
            lanes = [{"label": one.label, "values": list(one.values), "whole": one.whole} for one in block.lanes]
            span = {"start_ns": block.start_ns, "end_ns": block.end_ns}
            return {"type": "timeline", "title": block.title, **span, "lanes": lanes}
        case Series():
            return _series(block)
        case Prose():
            return {"type": "prose", "text": block.text}


def _series(series: Series) -> Object:
    return {
        "type": "series",
        "title": series.title,
        "unit": series.unit,
        "audience": series.audience,
        "points": [{"label": point.label, "value": point.value} for point in series.points],
        "levels": [{"start": level.start, "value": level.value} for level in series.levels],
    }


def _grid(grid: Grid) -> Object:
    names = [column.name for column in grid.columns]
    return {
        "type": "grid",
        "title": grid.title,
        "fold_below": grid.fold_below,
        "audience": grid.audience,
        **({"complete": True} if grid.complete else {}),
        "columns": [_column(column) for column in grid.columns],
        "rows": [dict(zip(names, row, strict=True)) for row in grid.rows],
    }


def _column(column: Column) -> Object:
    """Columns of changes have two keys more."""
    of_changes = {"signed": column.signed, "better": column.better} if column.signed else {}
    return {
        "name": column.name,
        "label": column.label,
        "unit": column.unit,
        "importance": column.importance,
        "bar": column.bar,
        **of_changes,
    }


# Reading: every field is checked, and an error names the field


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _read_report(document: Object) -> Report:
    verdict = _object(document, "verdict")
    return Report(
        run=_read_facts(document, "run_facts"),
        verdict=Verdict(_text(verdict, "code"), _text(verdict, "sentence")),
        sections=_each(document, "sections", _read_section),
        findings=_each(document, "findings", _read_finding),
        skipped=_each(document, "skipped", _read_skipped),
        notes=_each(document, "notes", _read_note),
    )


def _read_section(item: Object) -> Section:
    return Section(_text(item, "slug"), _text(item, "title"), _each(item, "blocks", _read_block))


def _read_block(item: Object) -> Block:
    match item.get("type"):
        case "facts":
            return Facts(_read_facts(item, "facts"), _audience(item))
        case "grid":
            return _read_grid(item)
        case "bars":
            bars = _each(item, "bars", _read_bar)
            return Bars(_text(item, "title"), _text(item, "whole"), _unit(item), bars)
        case "timeline":
            start, end = _integer(item, "start_ns"), _integer(item, "end_ns")
            return Timeline(_text(item, "title"), start, end, _each(item, "lanes", _read_lane))
        case "series":
            points, levels = _each(item, "points", _read_point), _each(item, "levels", _read_level)
            return Series(_text(item, "title"), _unit(item), points, levels, _audience(item))
        case "prose":
            return Prose(_text(item, "text"))
        case other:
            raise ValueError(f"a block has the unknown type {other!r}")


def _read_grid(item: Object) -> Grid:
    columns = _each(item, "columns", _read_column)
    names = [column.name for column in columns]

    def read_row(row: Object) -> Row:
        return tuple(_value(row, name) for name in names)

    rows = _each(item, "rows", read_row)
    complete = _flag(item, "complete") if "complete" in item else False
    return Grid(columns, rows, _text(item, "title"), _number(item, "fold_below"), _audience(item), complete)


def _read_column(item: Object) -> Column:
    signed = _flag(item, "signed") if "signed" in item else False
    better = _better(item) if "better" in item else ""
    importance, bar = _integer(item, "importance"), _flag(item, "bar")
    return Column(_text(item, "name"), _text(item, "label"), _unit(item), importance, bar, signed, better)


def _read_bar(item: Object) -> Bar:
    return Bar(_text(item, "key"), _text(item, "label"), _value(item, "value"), _number(item, "share"))


def _read_lane(item: Object) -> Lane:
    values = tuple(_number_or_none(value, "values") for value in _list(item, "values"))
    return Lane(_text(item, "label"), values, _text(item, "whole") if "whole" in item else "")


def _read_point(item: Object) -> Point:
    return Point(_text(item, "label"), _number_or_none(_get(item, "value"), "value"))


def _read_level(item: Object) -> Level:
    return Level(_integer(item, "start"), _number(item, "value"))


def _read_finding(item: Object) -> Finding:
    return Finding(
        code=_text(item, "code"),
        slug=_text(item, "slug"),
        severity=_severity(item),
        message=_text(item, "message"),
        evidence=_read_facts(item, "evidence"),
        advice=_texts(item, "advice"),
        cost_ns=_integer(item, "cost_ns"),
        share=_number_or_none(_get(item, "share"), "share"),
        share_of=_text(item, "share_of"),
    )


def _read_skipped(item: Object) -> Skipped:
    return Skipped(_text(item, "slug"), _text(item, "reason"), _texts(item, "tables") if "tables" in item else ())


def _read_note(item: Object) -> Note:
    count = None if _get(item, "count") is None else _integer(item, "count")
    return Note(_text(item, "code"), _severity(item), _text(item, "message"), count)


def _read_facts(item: Object, key: str) -> tuple[Fact, ...]:
    return _each(
        item, key, lambda fact: Fact(_text(fact, "key"), _text(fact, "label"), _value(fact, "value"), _unit(fact))
    )


def _wrong(key: str, wanted: str, seen: object) -> ValueError:
    return ValueError(f"{key!r} should be {wanted}, and is {seen!r:.80}")


def _get(item: Object, key: str) -> Any:
    if key not in item:
        raise ValueError(f"{key!r} is missing")
    return item[key]


def _each(item: Object, key: str, read: Callable[[Object], T]) -> tuple[T, ...]:
    entries = _list(item, key)
    for entry in entries:
        if not isinstance(entry, dict):
            raise _wrong(key, "a list of objects", entry)
    return tuple(read(entry) for entry in entries)


def _list(item: Object, key: str) -> list[Any]:
    value = _get(item, key)
    if not isinstance(value, list):
        raise _wrong(key, "a list", value)
    return value


def _texts(item: Object, key: str) -> tuple[str, ...]:
    texts = tuple(_list(item, key))
    if not all(isinstance(text, str) for text in texts):
        raise _wrong(key, "a list of texts", texts)
    return texts


def _flag(item: Object, key: str) -> bool:
    value = _get(item, key)
    if not isinstance(value, bool):
        raise _wrong(key, "true or false", value)
    return value


def _object(item: Object, key: str) -> Object:
    value = _get(item, key)
    if not isinstance(value, dict):
        raise _wrong(key, "an object", value)
    return value


def _text(item: Object, key: str) -> str:
    value = _get(item, key)
    if not isinstance(value, str):
        raise _wrong(key, "a text", value)
    return value


def _integer(item: Object, key: str) -> int:
    value = _get(item, key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(key, "an integer", value)
    return value


def _number(item: Object, key: str) -> float:
    value = _number_or_none(_get(item, key), key)
    if value is None:
        raise _wrong(key, "a number", value)
    return value


def _number_or_none(value: object, key: str) -> float | None:
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
        raise _wrong(key, "a number or null", value)
    return value


def _value(item: Object, key: str) -> Value:
    value = _get(item, key)
    if value is not None and not isinstance(value, get_args(Value)):
        raise _wrong(key, "a number, text, true, false or null", value)
    plain: Value = value
    return plain


def _unit(item: Object) -> Unit:
    unit: Unit = _get(item, "unit")
    if unit not in UNITS:
        raise _wrong("unit", f"one of {', '.join(UNITS)}", unit)
    return unit


def _audience(item: Object) -> Audience:
    match _text(item, "audience"):
        case "all":
            return "all"
        case "machine":
            return "machine"
        case other:
            raise _wrong("audience", "all or machine", other)


def _better(item: Object) -> Better:
    match _text(item, "better"):
        case "":
            return ""
        case "lower":
            return "lower"
        case "higher":
            return "higher"
        case other:
            raise _wrong("better", "lower, higher or empty", other)


def _severity(item: Object) -> Severity:
    try:
        return Severity(_get(item, "severity"))
    except ValueError:
        raise _wrong("severity", f"one of {', '.join(Severity)}", item.get("severity")) from None
