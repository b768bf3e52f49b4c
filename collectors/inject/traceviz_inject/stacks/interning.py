"""Stacks as numbers: each frame and each stack is written once, when first seen, and is only a number afterwards.

A stack is its innermost frame and the stack of the caller. Known stacks are found by the identity of the code and the
instruction in it, which needs no text and no line number. These are only read once.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quoted

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
        *("_next_frame", "_next_stack", "_places", "_stacks", "outside", "stepping"),
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
        self.stepping: dict[int, CodeType] = {}
        """By the number of a stack: the outermost function in it that may end a step of the program, by its name."""

    def number(self, frame: FrameType | None) -> int:
        """Return the number of the stack with this innermost frame; -1 if all of it is ours."""
        frames: list[FrameType] = []
        outside = self.outside
        while frame is not None and len(frames) < FARTHEST:
            if frame.f_code is outside:
                frame = None
                break
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
            name = self._name_of_call(frame)
            found = self._calls[key] = stack if not name else self._add_stack(stack, self._add_called(name))
        return found

    def _name_of_call(self, frame: FrameType) -> str:
        code = frame.f_code
        if code.co_filename.startswith(OURS):
            return ""
        names = self._names.get(id(code))
        if names is None:
            from .called_names import called_names  # noqa: PLC0415 not for programs that end before

            self._codes[id(code)] = code
            names = self._names[id(code)] = called_names(code)
        return names.get(frame.f_lasti, "")

    def _add_called(self, name: str) -> int:
        """Return the number of the frame of compiled code with this name."""
        number = self._called.get(name)
        if number is None:
            number, self._next_frame = self._next_frame, self._next_frame + 1
            self._called[name] = number
            self._lines.append(f'["frame",{number},{quoted(name)},"",null,"{NATIVE}"]\n')
        return number

    def _add(self, parent: int, frame: FrameType) -> int:
        """Return the number of a stack that was not seen at this instruction."""
        code, line = frame.f_code, frame.f_lineno
        self._codes[id(code)] = code  # so that its identity is not reused
        key = (id(code), line)
        number = self._frames.get(key)
        if number is None:
            number = self._frames[key] = self._add_frame(code, line, module_of(frame))
        if number < 0:
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

    def _add_frame(self, code: CodeType, line: int | None, module: str) -> int:
        named = self._places.name(code.co_filename, module)
        if named is None:
            return -1
        number, self._next_frame = self._next_frame, self._next_frame + 1
        shown = "null" if line is None else str(line)
        self._lines.append(
            f'["frame",{number},{quoted(function_of(code))},{quoted(named[0])},{shown},"{named[1]}"]\n',
        )
        return number
