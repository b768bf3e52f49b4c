"""Stacks as numbers: each frame and each stack is written once, when first seen, and is only a number afterwards.

A stack is its innermost frame and the stack of the caller. Known stacks are found by the identity of the code and the
instruction in it, which needs no text and no line number. These are only read once.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quoted

from ..status import GUARDED
from .frame_names import NATIVE, OURS, function_of, module_of

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .frame_names import Places

DEEPEST = 128
"""Innermost frames of a stack that are kept."""

OUTERMOST = 16
"""Outermost frames that are kept as well; they show the place in a program that imports or calls so deeply."""

FARTHEST = 1_024
"""Depth from which the outermost frames are dropped: then the recursion matters."""

MOST_CODES = 20_000
"""Functions that are known at once; this keeps them alive. Programs that make functions all the time continue with new
numbers."""

MOST_STACKS = 200_000
"""Stacks that are known at once."""

LONGEST = 100
"""Characters of the name of a called function that are kept."""
_MOST_INSTRUCTIONS = 20_000
MATRIX_PRODUCT = "operator.matmul"
"""Name of the operator ``@``."""

END_STEPS = frozenset(
    {
        *("step", "update", "apply_gradients", "train_step", "training_step", "train_batch", "train_on_batch"),
        *("train_one_batch", "update_params", "update_parameters", "update_weights", "partial_fit", "minimize"),
    }
)
"""Names that frameworks and programs give the function that ends a step."""


class Interning:
    """Numbers for stacks.

    Args:
        lines: Receives the lines that define a number, before it is used.
        places: Names files.
    """

    __slots__ = (
        *("_called", "_calls", "_codes", "_frames", "_known", "_lines", "_names"),
        *("_next_frame", "_next_stack", "_places", "_stacks", "around", "outside", "stepping"),
    )

    def __init__(self, lines: list[str], places: Places) -> None:
        self._lines = lines
        self._places = places
        self._known: dict[tuple[int, int, int], int] = {}
        self._codes: dict[int, CodeType] = {}
        self._frames: dict[tuple[int, int | None], int] = {}
        self._stacks: dict[tuple[int, int], int] = {}
        self._calls: dict[tuple[int, int], int] = {}
        self._names: dict[int, dict[int, str]] = {}
        self._called: dict[str, int] = {}
        self._next_frame = 0
        self._next_stack = 0
        self.outside: CodeType | None = None
        """A function around the sampled part: it and its callers are not part of a stack."""
        self.around: CodeType | None = None
        """The function that records the part: what it does before and after the part is our work."""
        self.stepping: dict[int, CodeType] = {}
        """By the number of a stack: the outermost function in it that may end a step of the program, by its name."""

    def number(self, frame: FrameType | None) -> int:
        """Return the number of the stack with this innermost frame; -1 if the thread does not work for the program.

        That is so if all frames are ours, or if a guarded function of ours is among them: a library that writes a file
        for us works for us.
        """
        frames: list[FrameType] = []
        outside, around = self.outside, self.around
        while frame is not None and len(frames) < FARTHEST:
            if frame.f_code is outside:
                frame = None
                break
            if frame.f_code is GUARDED or frame.f_code is around:
                return -1
            frames.append(frame)
            frame = frame.f_back
        if len(frames) > DEEPEST:
            frames[DEEPEST - OUTERMOST :] = frames[-OUTERMOST:] if frame is None else ()
        stack, known = -1, self._known
        for frame in reversed(frames):
            key = (stack, id(frame.f_code), frame.f_lasti)
            found = known.get(key)
            if found is None:
                found = self._add(stack, frame)
                known[key] = found
            stack = found
        return stack if not frames or stack < 0 else self._with_call(stack, frames[0])

    def forget_if_full(self) -> None:
        """Clear all tables if too much is known."""
        if len(self._codes) > MOST_CODES or len(self._known) > MOST_STACKS:
            for table in (self._known, self._codes, self._frames, self._stacks, self._calls, self._names, self._called):
                table.clear()
            self.stepping.clear()

    def _with_call(self, stack: int, frame: FrameType) -> int:
        """Return the stack with the function that its innermost frame calls, if that has no frame: ``os.fsync``.

        Only for stacks that were seen before: to find the name takes as long as many samples.
        """
        key = (stack, frame.f_lasti)
        found = self._calls.get(key)
        if found is None:
            self._calls[key] = -1
            return stack
        if found < 0:
            code, name = frame.f_code, ""
            if not code.co_filename.startswith(OURS):
                names = self._names.get(id(code))
                if names is None:
                    self._codes[id(code)] = code
                    names = self._names[id(code)] = called_names(code)
                name = names.get(frame.f_lasti, "")
            if name and name not in self._called:
                self._called[name] = self._define_frame(name, "", None, NATIVE)
            found = self._calls[key] = self._add_stack(stack, self._called[name]) if name else stack
        return found

    def _add(self, parent: int, frame: FrameType) -> int:
        """Return the number of a stack that was not seen at this instruction."""
        code, line = frame.f_code, frame.f_lineno
        self._codes[id(code)] = code  # so that its identity is not reused
        if line is None:  # a jump back to the start of a loop: there, loops of pure Python let other threads run
            line = line_of_jump(code, frame.f_lasti)
        key = (id(code), line)
        number = self._frames.get(key)
        if number is None:
            named = self._places.name(code.co_filename, module_of(frame))
            number = -1 if named is None else self._define_frame(function_of(code), named[0], line, named[1])
            self._frames[key] = number
        if number < 0:  # it is ours
            return parent
        stack = self._add_stack(parent, number)
        if code.co_name in END_STEPS and stack not in self.stepping:
            self.stepping[stack] = code
        return stack

    def _add_stack(self, parent: int, number: int) -> int:
        stack = self._stacks.get((parent, number))
        if stack is None:
            stack, self._next_stack = self._next_stack, self._next_stack + 1
            self._stacks[parent, number] = stack
            if parent in self.stepping:
                self.stepping[stack] = self.stepping[parent]
            self._lines.append(f'["stack",{stack},{parent if parent >= 0 else "null"},{number}]\n')
        return stack

    def _define_frame(self, function: str, file: str, line: int | None, origin: str) -> int:
        number, self._next_frame = self._next_frame, self._next_frame + 1
        shown = "null" if line is None else str(line)
        self._lines.append(f'["frame",{number},{quoted(function)},{quoted(file)},{shown},"{origin}"]\n')
        return number


def line_of_jump(code: CodeType, offset: int) -> int | None:
    """Return the line to which the instruction at ``offset`` jumps, else the last line before; ``None`` if not known.

    The jump at the end of a loop may have no line. Loops of pure Python let other threads run just there, and are
    sampled at it: they are named by their first line.
    """
    if not hasattr(code, "co_lines"):  # before Python 3.10, all instructions have one
        return None
    import dis  # noqa: PLC0415 not for programs that end before

    target = offset
    for number, instruction in enumerate(dis.get_instructions(code)):
        if instruction.offset == offset and "JUMP" in instruction.opname:
            target = min(offset, instruction.argval)
        if instruction.offset >= offset or number >= _MOST_INSTRUCTIONS:
            break
    lines = [(start, line) for start, _, line in code.co_lines() if line is not None and start <= target]
    return max(lines)[1] if lines else None


def called_names(code: CodeType) -> dict[int, str]:
    """Return the names of called functions in ``code``, by the offset of the call (``frame.f_lasti``).

    Compiled functions have no frame: only the call shows them. For example ``{24: "os.fsync"}``; empty before Python
    3.11, which knows the source columns of each instruction. The names at the start of a call were loaded from the
    columns where the call itself starts. It costs a pass over the instructions: cache it.
    """
    if not hasattr(code, "co_positions"):
        return {}
    import dis  # noqa: PLC0415 not for programs that end before

    found: dict[int, str] = {}
    started: dict[object, list[str]] = {}  # names by the start of the expression that contains them
    for number, instruction in enumerate(dis.get_instructions(code)):
        if number >= _MOST_INSTRUCTIONS:
            break
        where = getattr(instruction, "positions", None)
        names = started.setdefault((where.lineno, where.col_offset) if where is not None else None, [])
        operation, called = instruction.opname, ""
        if operation.startswith(("CALL", "PRECALL")):
            called = ".".join(names)
        elif operation in ("BEFORE_WITH", "BEFORE_ASYNC_WITH"):
            called = ".".join([*names, "__enter__"])
        elif operation == "BINARY_OP" and instruction.argrepr in ("@", "@="):
            called = MATRIX_PRODUCT
        if called:
            found[instruction.offset] = called[-LONGEST:]
        if operation.startswith("CALL"):  # its result has no name
            names.clear()
        elif operation.startswith("LOAD_") and operation != "LOAD_CONST" and isinstance(instruction.argval, str):
            if operation not in ("LOAD_ATTR", "LOAD_METHOD"):
                names.clear()
            names.append(instruction.argval)
    return found
