"""Names by which Python code calls compiled functions, which have no frame: only the call shows them.

::

    train.py:88   os.fsync(file.fileno())        the innermost frame is of train.py; its call is `os.fsync`

Python 3.11 and later know the source columns of each instruction. The names at the start of a call were loaded from the
columns where the call itself starts.
"""

from __future__ import annotations

import dis

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from types import CodeType

LONGEST = 100
"""Characters of a name that are kept."""
_MOST_INSTRUCTIONS = 20_000
_CALLS = ("CALL", "PRECALL")
_ENTERS = ("BEFORE_WITH", "BEFORE_ASYNC_WITH")
_MATRIX_PRODUCTS = ("@", "@=")
MATRIX_PRODUCT = "operator.matmul"
"""Name of the operator ``@``."""


def called_names(code: CodeType) -> dict[int, str]:
    """Return the names of called functions in ``code``, by the offset of the call (``frame.f_lasti``).

    For example ``{24: "os.fsync"}``; empty before Python 3.11. It costs a pass over the instructions: cache it.
    """
    if not hasattr(code, "co_positions"):
        return {}
    found: dict[int, str] = {}
    begun: dict[object, list[str]] = {}  # names by the start of the expression that contains them
    for number, instruction in enumerate(dis.get_instructions(code)):
        if number >= _MOST_INSTRUCTIONS:
            break
        where = getattr(instruction, "positions", None)
        names = begun.setdefault((where.lineno, where.col_offset) if where is not None else None, [])
        called = _called(instruction, names)
        if called:
            found[instruction.offset] = called[-LONGEST:]
        _read_names(instruction, names)
    return found


def _called(instruction: dis.Instruction, names: list[str]) -> str:
    """Return the name of the function that the instruction calls; may be empty."""
    if instruction.opname.startswith(_CALLS):
        return ".".join(names)
    if instruction.opname in _ENTERS:
        return ".".join([*names, "__enter__"])
    is_product = instruction.opname == "BINARY_OP" and instruction.argrepr in _MATRIX_PRODUCTS
    return MATRIX_PRODUCT if is_product else ""


def _read_names(instruction: dis.Instruction, names: list[str]) -> None:
    """Keep in ``names`` those at the start of the expression; the result of a call has none."""
    name = instruction.opname
    if name.startswith("CALL"):
        names.clear()
    elif name.startswith("LOAD_") and name != "LOAD_CONST" and isinstance(instruction.argval, str):
        if name not in ("LOAD_ATTR", "LOAD_METHOD"):
            names.clear()
        names.append(instruction.argval)
