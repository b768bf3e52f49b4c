"""By what name Python code calls what runs below it: compiled functions have no frame, and only their call tells.

::

    train.py:88   os.fsync(file.fileno())        the innermost frame is of train.py; its call is `os.fsync`

Python 3.11 and later know from which columns of the source an instruction was made. The names that a call begins with
were loaded from where the call itself begins.
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
"""What the operator ``@`` is called."""


def called_names(code: CodeType) -> dict[int, str]:
    """Names of what ``code`` calls, by the offset of the call (``frame.f_lasti``): ``{24: "os.fsync"}``.

    Empty before Python 3.11. Costs a pass over the instructions: keep it with the code.
    """
    if not hasattr(code, "co_positions"):
        return {}
    found: dict[int, str] = {}
    begun: dict[object, list[str]] = {}  # names by where the expression begins that they are of
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
    """What the instruction calls; may be empty."""
    if instruction.opname.startswith(_CALLS):
        return ".".join(names)
    if instruction.opname in _ENTERS:
        return ".".join([*names, "__enter__"])
    is_product = instruction.opname == "BINARY_OP" and instruction.argrepr in _MATRIX_PRODUCTS
    return MATRIX_PRODUCT if is_product else ""


def _read_names(instruction: dis.Instruction, names: list[str]) -> None:
    """Keep ``names`` those that the expression begins with; what a call returns has none."""
    name = instruction.opname
    if name.startswith("CALL"):
        names.clear()
    elif name.startswith("LOAD_") and name != "LOAD_CONST" and isinstance(instruction.argval, str):
        if name not in ("LOAD_ATTR", "LOAD_METHOD"):
            names.clear()
        names.append(instruction.argval)
