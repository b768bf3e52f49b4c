"""Findings that explain judged time more precisely than parts do, and bounds on the computing itself."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.analyses.headline.judged import Judged
from traceviz.analyses.headline.options import COMPUTE, HOST, INPUT, POSSIBLE_INPUT, UNEXPLAINED, Option
from traceviz.core.units import format_ratio
from traceviz.report import Certainty, Finding, Severity

_LAUNCHES = frozenset({"kernel_launch", "launch_queue", HOST})
_COMMUNICATION = frozenset({"communication", "host_collective"})
_SYSTEM = frozenset({"os_call", "waiting"})
_COPIES = frozenset({"copy_h2d", "copy_d2h", "blocking_copy"})

EXPLAINS: dict[str, tuple[Certainty, frozenset[str]]] = {
    "TV202": ("measured", _LAUNCHES),
    "TV203": ("measured", frozenset({"synchronisation"})),
    "TV204": ("at most", frozenset({COMPUTE})),
    "TV206": ("measured", frozenset({"blocking_copy"})),
    "TV301": ("measured", frozenset({"allocation"})),
    "TV302": ("measured", _COPIES),
    "TV303": ("measured", _COPIES),
    "TV304": ("measured", frozenset({"stream"})),
    "TV401": ("measured", frozenset({"compilation"})),
    "TV404": ("measured", frozenset({INPUT})),
    "TV405": ("at most", frozenset({COMPUTE})),
    "TV406": ("measured", frozenset({"kernel_launch", "launch_queue"})),
    "TV407": ("measured", _LAUNCHES),
    "TV408": ("at most", frozenset({COMPUTE})),
    "TV409": ("at most", frozenset({COMPUTE})),
    "TV410": ("measured", frozenset({"other_device"})),
    "TV501": ("measured", _COMMUNICATION),
    "TV502": ("measured", _COMMUNICATION),
    "TV503": ("measured", _COMMUNICATION),
    "TV504": ("measured", frozenset({"communication"})),
    "TV505": ("measured", frozenset({"parameter_transfer"})),
    "TV506": ("measured", frozenset({"host_collective"})),
    "TV610": ("measured", _SYSTEM | {"saving", "io"}),
    "TV611": ("measured", frozenset({HOST, "serialization"})),
    "TV612": ("measured", frozenset({"gil", "lock", "waiting"})),
    "TV613": ("measured", _SYSTEM | {"lock", "sleep"}),
    "TV614": ("measured", frozenset({"logging"})),
    "TV615": ("measured", frozenset({HOST})),
    "TV616": ("measured", frozenset({HOST})),
    "TV618": ("measured", _SYSTEM | {"gil", "lock", HOST}),
    "TV621": ("measured", frozenset({HOST})),
    "TV622": ("measured", _SYSTEM | {"saving", "io", "lock", "sleep", "gil", "logging", "serialization", HOST}),
    "TV902": ("measured", frozenset({"profiler"})),
}
"""How sure the findings of a code are, and which parts lie in their time. Findings of other codes are bounds."""

LAUNCH_BOUND = frozenset({"TV202", "TV407"})
"""Codes of findings in which the device waits for its next launch, whatever the host does."""
LABELS = {"TV202": "launch-bound"}
"""Names of findings within a sentence, where their slug reads badly."""

NAMED = frozenset({"TV610", "TV611", "TV612", "TV613", "TV614", "TV615", "TV616", "TV618", "TV621", "TV622"})
"""Codes of findings whose messages begin with what they are about: *Saving: 48 % of steady step time is ...*."""

_NAMES = frozenset({"GIL", "Python"})
"""Headings that are names."""

SAID_OTHERWISE = frozenset(
    {
        *("TV101", "TV102", "TV201", "TV205", "TV207", "TV208", "TV209", "TV210", "TV211"),
        *("TV606", "TV607"),
        *("TV601", "TV602", "TV603", "TV604", "TV605", "TV619", "TV620"),
        *("TV701", "TV702", "TV703", "TV704", "TV705"),
    }
)
"""Codes whose time is that of parts, or of the input; those of samples of the machine, on which others run, too; and
those of the whole run, of which :mod:`traceviz.analyses.headline.whole_run` speaks."""


def precise(
    findings: tuple[Finding, ...],
    judged: Judged,
    doubt: str,
    *,
    input_copies: bool = False,
    is_network: bool = True,
) -> Iterator[Option]:
    """Options from ``findings``; what is only for information is none.

    Args:
        findings: All findings.
        judged: The judged time.
        doubt: What was added to their messages about clocks, which the verdict says itself.
        input_copies: Whether copies to the device are part of the input.
        is_network: Whether the program may be of a framework; else it chose the precision of its matrices itself.
    """
    for finding in findings:
        if finding.code in SAID_OTHERWISE or finding.severity is Severity.INFO or not finding.cost_ns:
            continue
        if finding.code == "TV405" and not is_network:
            continue
        certainty, within = EXPLAINS.get(finding.code, ("at most", frozenset({COMPUTE})))
        label = LABELS.get(finding.code) or finding.slug.replace("-", " ")
        within = within | {INPUT} if input_copies and "copy_h2d" in within else within
        share = finding.share or 0.0
        of = finding.share_of or judged.words
        message = finding.message.removesuffix(doubt).rstrip()
        if "%" not in message:
            message = f"{message} At stake: {format_ratio(share)} of the {of}."
        sentence = f"{label[0].upper()}{label[1:]}: {_lowered(message)}"
        if finding.code in NAMED:
            heading = message.partition(" takes " if finding.code == "TV622" else ":")[0]
            label, sentence = heading if heading in _NAMES else _lowered(heading), message
        yield Option(
            finding.slug, label, finding.cost_ns, share, of, certainty, finding.code, sentence, within, finding.code
        )


def suspicion(share: float, time_ns: int, judged: Judged, sentence: str) -> Option:
    """The input as a possible cause: time of the host in which nothing was launched, without ranges to tell."""
    evidence = f"{format_ratio(share)} of host time without launches, and no range of data loading"
    within = frozenset({"os_call", HOST, UNEXPLAINED})
    return Option(
        POSSIBLE_INPUT, "input, possibly", time_ns, share, judged.words, "suspected", evidence, sentence, within
    )


def _lowered(message: str) -> str:
    """A message after a colon: its first letter small, unless the word is a name."""
    first, _, _ = message.partition(" ")
    is_name = not first[1:].islower() and len(first) > 1
    return message if is_name else f"{message[:1].lower()}{message[1:]}"
