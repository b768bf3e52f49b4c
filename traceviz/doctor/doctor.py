"""``traceviz doctor``: checks of what can be recorded here, with fixes, or of what a trace can answer.

>>> print(to_text(examine_machine(("nsys",))))
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from traceviz.collectors import registry
from traceviz.collectors.run.plan import AUTO
from traceviz.core.errors import MissingToolError, UsageError
from traceviz.core.nsys_program import find_nsys
from traceviz.core.sanitize import bounded, sentence, visible_json
from traceviz.doctor.checks import CONDITIONS, Check, Condition
from traceviz.doctor.machine import COLLECTORS, machine_checks, program_python, read_python
from traceviz.untrusted.errors import foreign_errors_in_words

if TYPE_CHECKING:
    from traceviz.trace.tables import TraceTables

NOT_READY = 3
"""Exit code if a required collector cannot record."""

_SIGNS: dict[Condition, tuple[str, str]] = {"ok": ("✓", "32"), "limited": ("!", "33"), "missing": ("✗", "31")}
_NAME_WIDTH = 14


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The results of all checks.

    Args:
        title: Name of the machine or trace.
        checks: The checks, group by group.
        required: Collectors that must be ready.
    """

    title: str
    checks: tuple[Check, ...]
    required: tuple[str, ...] = ()

    @property
    def not_ready(self) -> tuple[str, ...]:
        """Required collectors that cannot record."""
        missing = {check.name for check in self.checks if check.group == COLLECTORS and check.condition == "missing"}
        return tuple(name for name in self.required if name in missing)

    @property
    def exit_code(self) -> int:
        """Exit code: 0 if all required collectors can record."""
        return NOT_READY if self.not_ready else 0


def examine_machine(required: Iterable[str] = (), python: str | None = None) -> Diagnosis:
    """Check what can be recorded on this machine.

    Args:
        required: Collectors that must be ready; ``auto`` names none in particular.
        python: The Python that runs the program; ``None`` for ``python`` on PATH.

    Raises:
        UsageError: there is no such collector, or no such Python.
    """
    known = {collector.name: collector for collector in registry.COLLECTORS.all()}
    names = tuple(name for name in required if name != AUTO)
    for name in names:
        if name not in known:
            raise UsageError.unknown("collector", name, (*known, AUTO))
    program = read_python(program_python(python))
    states = {name: registry.state_of(collector) for name, collector in known.items()}
    nsys = None
    with suppress(MissingToolError):  # the check of the collector reports the error
        nsys = find_nsys()
    return Diagnosis("this machine", tuple(machine_checks(states, nsys, program)), names)


@foreign_errors_in_words("The trace cannot be examined.")
def examine_trace(tables: TraceTables, name: str) -> Diagnosis:
    """Check what the trace called ``name`` can answer."""
    from traceviz.doctor.trace import trace_checks  # noqa: PLC0415 (polars takes 0.5 s to import)

    checks = sorted(trace_checks(tables), key=lambda check: ("recorded", "markers", "completeness").index(check.group))
    return Diagnosis(name, tuple(checks))


def to_text(diagnosis: Diagnosis, width: int = 100, *, color: bool = False) -> str:
    """Return one line per check, wrapped to ``width`` columns, with the command that fixes it below."""
    lines = [f"traceviz doctor: {_one_line(diagnosis.title)}"]
    for group, checks in groupby(diagnosis.checks, key=lambda check: check.group):
        lines += ["", _paint(group.capitalize(), "1", color=color)]
        for check in checks:
            lines += _lines(check, width, color=color)
    return "\n".join((*lines, "", *_wrap(_summary(diagnosis), width), ""))


def to_json(diagnosis: Diagnosis) -> str:
    """Return the checks as JSON."""
    document = {
        "kind": "traceviz.doctor",
        "version": 1,
        "subject": diagnosis.title,
        "checks": [asdict(check) for check in diagnosis.checks],
        "asked": list(diagnosis.required),
        "not_ready": list(diagnosis.not_ready),
    }
    return visible_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def _lines(check: Check, width: int, *, color: bool) -> list[str]:
    sign, paint = _SIGNS[check.condition]
    indent = " " * (_NAME_WIDTH + 15)
    first = f"  {sign} {check.condition:<8} {_one_line(check.name):<{_NAME_WIDTH}}  "
    detail = _wrap(check.detail, width - len(indent)) or [""]
    begin = _paint(first[:12], paint, color=color) + first[12:]
    lines = [begin + detail[0], *(indent + line for line in detail[1:])]
    if check.fix:
        fix = _wrap(check.fix, width - len(indent) - 2)
        lines += [f"{indent}{'→ ' if number == 0 else '  '}{line}" for number, line in enumerate(fix)]
    return [line.rstrip() for line in lines]


def _wrap(text: str, width: int) -> list[str]:
    """Wrap ``text`` to lines. Flags and paths are not split, even if they are too wide, so that they can be copied."""
    return textwrap.wrap(_one_line(text), max(width, 1), break_long_words=False, break_on_hyphens=False)


def _one_line(text: str) -> str:
    """Return ``text`` on one line without control characters, because messages come from files."""
    return sentence(bounded(text))


def _summary(diagnosis: Diagnosis) -> str:
    counts = {condition: sum(check.condition == condition for check in diagnosis.checks) for condition in CONDITIONS}
    words = ", ".join(f"{count} {condition}" for condition, count in counts.items())
    if diagnosis.not_ready:
        return f"{words}. Cannot record: {', '.join(diagnosis.not_ready)}."
    ready = f" Ready: {', '.join(diagnosis.required)}." if diagnosis.required else ""
    return f"{words}.{ready}"


def _paint(text: str, code: str, *, color: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if color else text
