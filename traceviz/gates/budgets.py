"""Limits for figures of a report, as people write them: ``input_wait<=5%``, ``step_median<=120ms``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from traceviz.core.errors import UsageError
from traceviz.core.units import Unit
from traceviz.gates.metrics import Metric, metric

_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
RELATIONS = (*_RELATIONS, "≤", "≥")
"""Relations that can start a limit."""
_EXPRESSION = re.compile(
    r"(?P<name>[^<>=≤≥\s]*+(?:\s++[^<>=≤≥\s]++)*+)\s*+(?P<relation><=|>=|≤|≥|<|>)\s*+(?P<amount>[^<>=≤≥]*+)"
)
_AMOUNT = re.compile(r"(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(?P<unit>[^\s\d.,+-]*)")
_TYPOGRAPHY = {"≤": "<=", "≥": ">="}

_TIMES = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_PREFIXES = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZES = {
    "B": 1,
    **{f"{prefix}B": 1000**power for prefix, power in _PREFIXES.items()},
    **{f"{prefix}iB": 1024**power for prefix, power in _PREFIXES.items()},
}
_SCALES: dict[Unit, dict[str, int | Fraction]] = {
    "ns": dict(_TIMES),
    "ratio": {"%": Fraction(1, 100), "": 1},
    "factor": {"x": 1, "×": 1, "": 1},
    "bytes": dict(_SIZES),
    "bytes/s": {f"{name}/s": size for name, size in _SIZES.items()},
    "joule": {"mJ": Fraction(1, 1000), "J": 1, "kJ": 10**3, "MJ": 10**6, "Wh": 3600, "kWh": 3_600_000},
    "per_second": {"/s": 1, "": 1},
    "count": {"": 1},
    "number": {"": 1},
}
"""Factor of each written unit to the base unit; the empty unit is for a plain number."""
_EXAMPLES: dict[Unit, str] = {
    "ns": "120ms",
    "ratio": "5%, or 0.05",
    "factor": "1.5x",
    "bytes": "8GB",
    "bytes/s": "10GB/s",
    "joule": "50kJ",
    "per_second": "100/s, or 100",
    "count": "3",
    "number": "3",
}


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit for one metric.

    Args:
        metric: The limited metric.
        relation: ``<=``, ``>=``, ``<`` or ``>``.
        amount: The limit as it was written, with its unit.
    """

    metric: Metric
    relation: str
    amount: str

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read ``input_wait<=5%``.

        Raises:
            UsageError: it is not such an expression, there is no such metric, or the limit does not fit its unit.
        """
        expression = _EXPRESSION.fullmatch(text.strip())
        if expression is None or not expression["name"]:
            raise UsageError(
                f"{text!r} is not a budget.",
                "A budget is a metric, one of <=, >=, <, > and a limit.",
                'Quote it, because the shell redirects < and >: --budget "input_wait<=5%".',
            )
        relation = _TYPOGRAPHY.get(expression["relation"], expression["relation"])
        return cls.of(metric(expression["name"]), relation, expression["amount"].strip())

    @classmethod
    def of(cls, limited: Metric, relation: str, amount: str) -> Budget:
        """Return a budget; check the limit as far as the unit of the metric is known."""
        budget = cls(limited, relation, amount)
        if limited.unit is not None:
            budget.limit(limited.unit)
        elif _AMOUNT.fullmatch(amount) is None:
            raise _not_a_limit(budget, "number")
        return budget

    @property
    def limit_text(self) -> str:
        """The limit for people: ``<= 5%``."""
        return f"{self.relation} {self.amount}"

    @property
    def is_upper(self) -> bool:
        """True if it is an upper limit."""
        return self.relation.startswith("<")

    def limit(self, unit: Unit) -> float:
        """Return the limit in base ``unit``: the float nearest to the written number.

        Raises:
            UsageError: it is not an amount of that unit.
        """
        amount, scales = _AMOUNT.fullmatch(self.amount), _SCALES.get(unit)
        if scales is None:
            raise UsageError(f"{self.metric.name} cannot have a limit, as it is not a number.")
        if amount is None:
            raise _not_a_limit(self, unit)
        number, scale = Fraction(amount["number"]), scales.get(amount["unit"])
        if scale is None and not amount["unit"] and not number:
            return 0.0
        if scale is None or (unit == "ratio" and not amount["unit"] and number > 1):
            raise _not_a_limit(self, unit)
        try:
            return float(number * scale)
        except OverflowError:
            raise _not_a_limit(self, unit) from None

    def holds(self, value: float, unit: Unit) -> bool:
        """Return whether ``value`` in base ``unit`` keeps the limit.

        Raises:
            UsageError: the limit is not an amount of that unit.
        """
        return _RELATIONS[self.relation](value, self.limit(unit))


def _not_a_limit(budget: Budget, unit: Unit) -> UsageError:
    name = budget.metric.name
    return UsageError(f"{budget.amount!r} is not a limit for {name}.", fix=f"Write, for example, {_EXAMPLES[unit]}.")


def parse_share(text: str) -> float:
    """Return a share: ``5%`` or ``0.05``.

    Raises:
        UsageError: it is neither.
    """
    amount = _AMOUNT.fullmatch(text.strip())
    scale = _SCALES["ratio"].get(amount["unit"]) if amount else None
    if amount is None or scale is None or (not amount["unit"] and Fraction(amount["number"]) > 1):
        raise UsageError(f"{text!r} is not a share.", fix=f"Write, for example, {_EXAMPLES['ratio']}.")
    try:
        return float(Fraction(amount["number"]) * scale)
    except OverflowError:
        raise UsageError(f"{text!r} is too large.", fix=f"Write, for example, {_EXAMPLES['ratio']}.") from None
