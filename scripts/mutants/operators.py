"""Operators of mutants: the relevant ones of cosmic-ray, and our own for column computations.

A class of cosmic-ray makes one change of one place. If it has one for every pair of operators, a few are enough:
the boundary, the opposite, and a typing error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    number_replacer,
    unary_operator_replacement,
    zero_iteration_for_loop,
)
from cosmic_ray.operators.operator import Example, Operator
from parso.python.tree import Name, String

Position = tuple[tuple[int, int], tuple[int, int]]

_OF_COSMIC_RAY = {
    binary_operator_replacement: (
        *("Add_Sub", "Sub_Add", "Mul_Add", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul"),
        *("BitOr_BitAnd", "BitAnd_BitOr", "LShift_RShift", "RShift_LShift"),
    ),
    comparison_operator_replacement: (
        *("Lt_LtE", "Lt_Gt", "LtE_Lt", "Gt_GtE", "Gt_Lt", "GtE_Gt"),
        *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
    ),
    unary_operator_replacement: ("Delete_USub", "Delete_Invert", "Delete_Not"),
}
_WHOLE = (
    number_replacer.NumberReplacer,
    boolean_replacer.ReplaceTrueWithFalse,
    boolean_replacer.ReplaceFalseWithTrue,
    boolean_replacer.ReplaceAndWithOr,
    boolean_replacer.ReplaceOrWithAnd,
    boolean_replacer.AddNot,
    break_continue.ReplaceBreakWithContinue,
    break_continue.ReplaceContinueWithBreak,
    zero_iteration_for_loop.ZeroIterationForLoop,
)

OTHER_NAMES = {
    "sum": "max",
    "max": "min",
    "min": "max",
    "mean": "median",
    "median": "mean",
    "first": "last",
    "last": "first",
    "any": "all",
    "all": "any",
    "len": "n_unique",
    "count": "n_unique",
    "n_unique": "len",
    "head": "tail",
    "tail": "head",
    "is_null": "is_not_null",
    "is_not_null": "is_null",
    "cum_sum": "cum_max",
    "cum_max": "cum_sum",
    "arg_max": "arg_min",
    "arg_min": "arg_max",
    "floor": "ceil",
    "ceil": "floor",
    "forward_fill": "backward_fill",
    "backward_fill": "forward_fill",
    "starts_with": "ends_with",
    "ends_with": "starts_with",
    "startswith": "endswith",
    "endswith": "startswith",
    "sum_horizontal": "max_horizontal",
    "max_horizontal": "min_horizontal",
    "min_horizontal": "max_horizontal",
    "any_horizontal": "all_horizontal",
    "all_horizontal": "any_horizontal",
    "maximum": "minimum",
    "minimum": "maximum",
    "argmax": "argmin",
    "argmin": "argmax",
    "cumsum": "ravel",
    "equal": "not_equal",
    "not_equal": "equal",
    "less": "less_equal",
    "less_equal": "less",
    "greater": "greater_equal",
    "greater_equal": "greater",
    "add": "subtract",
    "subtract": "add",
    "and_": "or_",
    "or_": "and_",
    "union": "intersection",
    "intersection": "union",
    "intersect": "subtract",
}
"""Methods of columns, frames, arrays and intervals, and functions, each with one that is easily confused with it."""

LEFT_OUT = frozenset(
    {"filter", "sort", "unique", "fill_null", "drop_nulls", "abs", "clip", "over", "strip", "lower", "reverse", "round"}
)
"""Methods that return a similar object to their own: a chain also runs without one of them."""

OTHER_WORDS = {
    "how": {"left": "inner", "inner": "left", "semi": "anti", "anti": "semi", "full": "left"},
    "strategy": {"backward": "forward", "forward": "backward"},
    "closed": {"left": "right", "right": "left"},
    "side": {"left": "right", "right": "left"},
    "maintain_order": {"left": "right"},
}
"""Argument values of joins and searches, each with another."""


def _is_called(node: Any) -> bool:
    """Return whether a name is that of a method or function that is called here."""
    after = node.get_next_sibling()
    if node.parent.type == "trailer":
        after = node.parent.get_next_sibling()
    return after is not None and after.type == "trailer" and after.children[0].value == "("


class OtherMethod(Operator):
    """Operator that calls another method: the largest in place of the sum, the last in place of the first."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Yield the names of methods or functions that have another."""
        if isinstance(node, Name) and node.value in OTHER_NAMES and node.parent.type != "argument" and _is_called(node):
            is_method = node.parent.type == "trailer"
            if is_method or node.value in {"sum", "max", "min", "any", "all"}:
                yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:  # noqa: ARG002 (one change of a place)
        """Replace the name."""
        node.value = OTHER_NAMES[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return examples of the change."""
        return (Example("x.sum()", "x.max()"), Example("max(x, y)", "min(x, y)"))


class WithoutMethod(Operator):
    """Operator that removes a method from a chain: no filter, no order, nothing filled in."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Yield the places in a chain of calls at which one can be removed."""
        for at in self._places(node):
            yield node.children[at].start_pos, node.children[at + 1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Remove that call from the chain."""
        at = list(self._places(node))[index]
        del node.children[at : at + 2]
        return node

    @staticmethod
    def _places(node: Any) -> Iterator[int]:
        if node.type not in {"atom_expr", "power"}:
            return
        for at, (child, after) in enumerate(zip(node.children, node.children[1:], strict=False)):
            if child.type == after.type == "trailer" and child.children[0].value == "." and at > 0:
                is_call = after.children[0].value == "("
                if is_call and child.children[1].value in LEFT_OUT:
                    yield at

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return examples of the change."""
        return (Example('x.sort("a").head(3)', "x.head(3)"),)


class OtherWord(Operator):
    """Operator that joins or searches in another way: inner in place of left, forward in place of backward."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Yield argument values that have another."""
        if self._other(node) is not None:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:  # noqa: ARG002 (one change of a place)
        """Replace the value."""
        node.value = f'"{self._other(node)}"'
        return node

    @staticmethod
    def _other(node: Any) -> str | None:
        if isinstance(node, String) and node.parent.type == "argument" and node.parent.children[0].type == "name":
            return OTHER_WORDS.get(node.parent.children[0].value, {}).get(node.value.strip("\"'"))
        return None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return examples of the change."""
        return (Example('a.join(b, how="left")', 'a.join(b, how="inner")'),)


class OtherMembership(Operator):
    """Operator that swaps ``in`` and ``not in``."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Yield the membership operators of a comparison."""
        if node.type == "comparison":
            for at in self._places(node):
                yield node.children[at].start_pos, node.children[at].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Replace the operator by its opposite."""
        at = self._places(node)[index]
        was = node.children[at].get_code()
        node.children[at] = Name(" in" if "not" in was else " not in", node.children[at].start_pos)
        return node

    @staticmethod
    def _places(node: Any) -> list[int]:
        return [
            at
            for at in range(1, len(node.children), 2)
            if node.children[at].get_code().split() in (["in"], ["not", "in"])
        ]

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Return examples of the change."""
        return (Example("x in y", "x not in y"), Example("x not in y", "x in y"))


OWN = (OtherMethod, WithoutMethod, OtherWord, OtherMembership)


def operators() -> dict[str, Operator]:
    """Return every operator by its name."""
    chosen = [
        operator
        for module, pairs in _OF_COSMIC_RAY.items()
        for operator in module.operators()
        if operator.__name__.partition("_")[2] in pairs
    ]
    return {operator.__name__: operator() for operator in (*chosen, *_WHOLE, *OWN)}
