"""Traces whose every text attacks the page that shows it, and what such a page must not hold.

An attack that works leaves a trace: a dialog, a request, a complaint of the browser, an element with ``data-evil``.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.parsers.xplane.files import Ref, Unsigned, event, line, space
from tests.parsers.xplane.traces import US, environment, gpu, host

NOWHERE = "http://127.0.0.1:9"
IMAGE = '<img data-evil src=x onerror="alert(1)">'
ATTACKS = {
    "image": IMAGE,
    "script": "</script><script data-evil>alert(2)</script>",
    "remote image": f'<img data-evil src="{NOWHERE}/image.png">',
    "style": "}</style><style data-evil>*{display:none!important}</style>",
    "declaration": f"red;}} body{{display:none}} a{{background:url({NOWHERE}/css)}}",
    "attribute": '" onmouseover="alert(3)" data-evil="',
    "quoted attribute": "' onfocus='alert(4)' autofocus data-evil='",
    "address": "javascript:alert(5)",
    "data address": "data:text/html,<script data-evil>alert(6)</script>",
    "svg": "<svg data-evil onload=alert(7)><animate onbegin=alert(7) attributeName=x dur=1s></svg>",
    "xml": ']]><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x data-evil>&e;</x>',
    "comment": "--><iframe data-evil srcdoc='<script>alert(8)</script>'></iframe><!--",
    "base": f"</title></textarea></noscript></template><base data-evil href={NOWHERE}/>",
    "refresh": f"<meta data-evil http-equiv=refresh content='0;url={NOWHERE}/refresh'>",
    "template": "{{ 7*191919191 }}${7*191919191}{% raw %}",
    "half a script": "<!--<script>",
    "entity": "&lt;img data-evil&gt;&#60;b data-evil&#62;&nbsp",
    "bidi": "ab\u202egnp.exe\u2066x\u200f",
    "invisible": "zero\u200bwidth\u200d\ufeff\u2060",
    "lines": "a\u2028b\u2029c",
    "control": "bell\x07esc\x1b[8m\r\n\t\x7f\x85",
    "marks": "z" + "\u0301" * 60,
    "member": "__proto__",
}
JSON_ATTACKS = {**ATTACKS, "nul": "nul\x00nul", "surrogate": "lone\ud800lone\udfff"}
"""With what only JSON carries."""
WHOLE = "__proto__", "constructor", "toString", "", " "
"""Names that are attacks as they are: keys that every object of JavaScript has, and names of nothing to see."""
SAFE_JSON = (
    "cu",
    "ProfilerStep",
    "[memory]",
    "Iteration",
    "process_",
    "thread_",
    "aten::",
    "nccl",
    "enumerate(",
    "Optim",
)
"""Beginnings of texts of a Kineto trace that its reader needs as they are."""
FILE_NAME = f"{IMAGE}'\u202e\n;{{}}"
"""Of a file: all but a slash."""


class Attacks:
    """Each text of a trace gets an attack of its own, in turn; the same text always the same one."""

    def __init__(self, attacks: dict[str, str]) -> None:
        self._attacks = (*attacks.values(),)
        self._given: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        """Return ``text`` with its attack."""
        return self._given.setdefault(text, text + self._attacks[len(self._given) % len(self._attacks)])


def kineto(sample: Path, place: Path) -> Path:
    """Return a trace of PyTorch whose names of operators, kernels, threads, modules and calls attack."""
    place.write_text(json.dumps(_of_json(json.loads(gzip.decompress(sample.read_bytes())), Attacks(JSON_ATTACKS))))
    return place


def _of_json(value: Any, attacks: Attacks, key: str | None = None) -> Any:
    if isinstance(value, dict):
        return {name: _of_json(item, attacks, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_of_json(item, attacks, key) for item in value]
    is_word = key in {"ph", "cat", "bp", "kind"} or not isinstance(value, str) or value.startswith(SAFE_JSON)
    return value if is_word else attacks(value)


def nsys(sample: Path, place: Path) -> Path:
    """Return a database of nsys whose names of kernels, ranges, threads, processes and devices attack."""
    place.write_bytes(sample.read_bytes())
    attacks = Attacks(ATTACKS)
    with sqlite3.connect(place) as database:
        database.create_function("evil", 1, attacks)
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for _, column, kind, *_ in database.execute(f'PRAGMA table_info("{table}")').fetchall():
                if "TEXT" in kind.upper() and not table.startswith("ENUM"):
                    is_name = f"typeof(\"{column}\") = 'text' AND \"{column}\" NOT LIKE 'cu%'"
                    database.execute(f'UPDATE "{table}" SET "{column}" = evil("{column}") WHERE {is_name}')
    database.close()
    return place


def xplane(place: Path, steps: int = 4) -> Path:
    """Return a capture of TensorFlow on one GPU whose names attack, in each step others."""
    attacks = Attacks(ATTACKS)
    host_events, kernels = [], []
    for step in range(steps):
        at = step * 100 * US
        launched = {
            "correlation_id": Unsigned(step),
            "context_id": "$$1",
            "tf_op": Ref(attacks(f"dense{step}/x:MatMul")),
        }
        host_events += [
            event("train", at, 90 * US, {"step_num": step, "_r": 1}),
            event(f"IteratorGetNext:{attacks('next')}", at + US, 10 * US),
            event("cuLaunchKernel", at + 20 * US, 5 * US, {"correlation_id": step, "device_id": 0}),
            event(attacks(f"operator {step}"), at + 40 * US, 20 * US),
            *(event(text, at + 61 * US + turn * US, US) for turn, text in enumerate(WHOLE)),
        ]
        kernels.append(event(attacks(f"gemm{step}"), at + 30 * US, 40 * US, launched))
    content = space(
        host(line(100, *host_events, name=attacks("python3"), timestamp_ns=1_000)),
        gpu(line(13, *kernels, name=f"Stream #13({attacks('Compute')})", timestamp_ns=1_000)),
        environment(),
        hostnames=[attacks("host")],
        warnings=[attacks("warning")],
        errors=[attacks("error")],
    )
    place.write_bytes(content)
    return place


def many_names(place: Path, names: int, characters: int) -> Path:
    """Return a trace of PyTorch with so many operators and kernels, no two of one name, each of so many characters."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": f"p{'x' * characters}"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "ts": 0, "args": {"name": f"t{'y' * characters}"}},
    ]
    steps = 5
    for step in range(steps):
        times = {"ts": 1000 + step * 10 * names, "dur": 10 * names - 1}
        events.append(
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, **times}
        )
    for number in range(names):
        filled = f"{number:07}{IMAGE}".ljust(characters, "z")
        at = 1000 + number * steps * 10
        stream = {"device": 0, "context": 1, "stream": 7, "correlation": number}
        launched = {"correlation": number, "cbid": 211}
        events += [
            {"ph": "X", "cat": "cpu_op", "name": f"o{filled}", "pid": 1, "tid": 1, "ts": at + 1, "dur": 20},
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "pid": 1,
                "tid": 1,
                "ts": at + 2,
                "dur": 3,
                "args": launched,
            },
            {
                "ph": "X",
                "cat": "kernel",
                "name": f"k{filled}",
                "pid": 0,
                "tid": 7,
                "ts": at + 9,
                "dur": 30,
                "args": stream,
            },
        ]
    header = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": 1 << 30}]}
    place.write_text(json.dumps({**header, "traceEvents": events, "traceName": place.name}))
    return place
