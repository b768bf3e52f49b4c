"""Every pattern of Python's ``re`` in the package: held by modules, or stated in a call."""

import ast
import dataclasses
import importlib
import inspect
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGES = ("traceviz", "traceviz.parsers", "traceviz.collectors")
_CALLS = frozenset({"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"})
_DEPTH = 6
_MATCHED = ("traceviz.trace.names.cuda_names.", "traceviz.parsers.xplane.capture._SIGNS")
"""Patterns in collections that are compared with the beginning of a name only."""


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern of the package.

    Args:
        where: Module and name, or module and function.
        pattern: The compiled pattern.
        whole: Whether it is only ever compared with the beginning of a text (``match``, ``fullmatch``).
    """

    where: str
    pattern: re.Pattern
    whole: bool


def modules():
    """Return the modules of the package that are written in Python, all imported."""
    names = {}
    for top in PACKAGES:
        folder = Path(importlib.import_module(top).__file__).parent
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if not {"inject", "__main__", "tests"} & set(parts):
                names[".".join([top, *parts]).removesuffix(".__init__")] = None
    return [importlib.import_module(name) for name in names]


def _prepared():
    """Return the patterns that functions compile at their first call."""
    cuda_names = importlib.import_module("traceviz.trace.names.cuda_names")
    kernel_names = importlib.import_module("traceviz.trace.names.kernel_names")
    op_families = importlib.import_module("traceviz.trace.names.op_families")
    redactor = importlib.import_module("traceviz.scrub.secrets.redactor").Redactor((b"/gpu/home", b"ann"), frozenset())
    collectives = importlib.import_module("traceviz.analyses.ranks.collectives")
    waits = importlib.import_module("traceviz.analyses.launch.waits")
    yield "traceviz.trace.names.cuda_names._patterns()", cuda_names._patterns()
    kernels = kernel_names.catalogue()
    parts = (*kernels.families, *kernels.precisions, kernels.certainly_not, kernels.certainly)
    yield "traceviz.trace.names.kernel_names.catalogue()", [part.regex for part in parts]
    yield "traceviz.trace.names.op_families.catalogue()", op_families.catalogue()
    yield "traceviz.scrub.secrets.redactor.Redactor._paths", redactor._paths
    yield "traceviz.scrub.secrets.redactor.Redactor._pattern", redactor._pattern
    yield "traceviz.analyses.ranks.collectives._FACTORS", [re.compile(row[0]) for row in collectives._FACTORS]
    yield "traceviz.analyses.launch.waits._ADVICE", [re.compile(row[0]) for row in waits._ADVICE]


def patterns():
    """Return all patterns, each once, and calls whose pattern is only known at run time: ``(found, unknown)``."""
    found, unknown = {}, []
    for module in modules():
        held = {name: value for name, value in vars(module).items() if not name.startswith("__")}
        places = list(_within(held, module.__name__, 0))
        if not places and "re" not in held:
            continue
        methods, calls = _uses(module)
        for where, pattern in places:
            name = where.removeprefix(module.__name__ + ".").split(".")[0].split("[")[0]
            of_here = name in methods or name in _names_assigned(module)
            if of_here or pattern not in found:
                anchored = bool(methods.get(name)) and methods[name] <= {"match", "fullmatch"}
                whole = anchored or where.startswith(_MATCHED)
                _add(found, where, pattern, whole)
        for function, method, argument in calls:
            where = f"{module.__name__}:{function}"
            value = _value(argument, vars(module))
            if value is None:
                unknown.append(f"{where}: {ast.unparse(argument)}")
            else:
                _add(
                    found,
                    where,
                    value if isinstance(value, re.Pattern) else re.compile(value),
                    method in {"match", "fullmatch"},
                )
    for where, value in _prepared():
        for place, pattern in _within(value, where, 0):
            _add(found, place, pattern, whole=where.startswith(_MATCHED))
    return sorted(found.values(), key=lambda one: one.where), sorted(set(unknown))


def _add(found, where, pattern, whole):
    before = found.get(pattern)
    if before is None or (before.whole and not whole):
        found[pattern] = Found(where, pattern, whole)


def _within(value, where, depth):
    if isinstance(value, re.Pattern):
        yield where, value
    elif depth < _DEPTH:
        for name, part in _parts(value):
            yield from _within(part, f"{where}{name}", depth + 1)


def _parts(value):
    if isinstance(value, dict):
        return [(f".{name}", part) for name, part in value.items()] + [("[key]", name) for name in value]
    if isinstance(value, tuple | list | set | frozenset):
        return [(f"[{at}]", part) for at, part in enumerate(value)]
    if inspect.isclass(value) and str(value.__module__).startswith("traceviz"):
        return [(f".{name}", part) for name, part in vars(value).items() if not name.startswith("__")]
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith("traceviz"):
        return [(f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    return []


@cache
def _tree(module):
    path = Path(module.__file__)
    return ast.parse(path.read_text(encoding="utf-8") if path.suffix == ".py" else "")


def _names_assigned(module):
    return {
        target.id
        for node in _tree(module).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _uses(module):
    """Return methods that are called on names of the module, and calls of ``re`` with the function they are in."""
    methods, calls = {}, []

    def visit(node, function):
        for child in ast.iter_child_nodes(node):
            inner = function
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{function}.{child.name}".lstrip(".")
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load) and not isinstance(node, ast.Attribute):
                methods.setdefault(child.id, set()).add("other")
            if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name | ast.Attribute):
                name = child.value.id if isinstance(child.value, ast.Name) else child.value.attr
                methods.setdefault(name, set()).add(child.attr)
            if _is_call_of_re(child) and inner:
                calls.append((inner, child.func.attr, child.args[0]))
            visit(child, inner)

    visit(_tree(module), "")
    return methods, calls


def _is_call_of_re(node):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in _CALLS
    )


def _value(argument, names):
    try:
        value = eval(compile(ast.Expression(argument), "pattern", "eval"), dict(names))
    except NameError:
        return None
    return value if isinstance(value, str | bytes | re.Pattern) else None
