"""Where the time of a program goes, by timers in its own functions: the truth that reports are judged by.

::

    python time_functions.py PROGRAM.py     # prints the time in each function, as a share of the steps and of the run

Every function of the program gets a timer around it (of a generator: around each value); nothing else is changed.
The steps are what follows the tenth call of train_step(), up to the end of the last one.
"""

import ast
import functools
import inspect
import sys
import threading
import time
from collections import defaultdict

START = time.perf_counter()
WARM_UP = 10
calls, total, in_steps = defaultdict(int), defaultdict(float), defaultdict(float)
at_step = []


def _add(name, start):
    end, key = time.perf_counter(), (name, threading.current_thread().name)
    if name == "train_step":
        at_step.append(end)
    calls[key] += 1
    total[key] += end - start
    if len(at_step) >= WARM_UP:
        in_steps[key] += end - max(start, at_step[WARM_UP - 1])


def timed(function):
    """``function`` with a timer around it."""
    name = getattr(function, "__name__", str(function))

    @functools.wraps(function)
    def call(*arguments, **named):
        start = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            _add(name, start)

    @functools.wraps(function)
    def generate(*arguments, **named):
        values = function(*arguments, **named)
        while True:
            start = time.perf_counter()
            try:
                value = next(values)
            except StopIteration:
                return
            finally:
                _add(name, start)
            yield value

    return generate if inspect.isgeneratorfunction(function) else call


class _AddTimers(ast.NodeTransformer):
    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.decorator_list.insert(0, ast.Name("__timed__", ast.Load()))
        return node


def main(path):
    """Run the program with timers, and print what they say."""
    with open(path, encoding="utf-8") as file:
        program = ast.fix_missing_locations(_AddTimers().visit(ast.parse(file.read())))
    module = sys.modules["__main__"]
    module.__dict__.update(__timed__=timed, __file__=path)
    sys.argv = [path]
    exec(compile(program, path, "exec"), module.__dict__)
    run = time.perf_counter() - START
    steps = at_step[-1] - at_step[WARM_UP - 1] if len(at_step) > WARM_UP else None
    print(f"{path}: run {run:.2f} s, {len(at_step)} steps, the last {len(at_step) - WARM_UP} of them {steps} s")
    for key, seconds in sorted(total.items(), key=lambda item: -item[1]):
        share = f"{in_steps[key] / steps:7.1%} of steps" if steps else ""
        print(f"  {key[0]:20} {key[1]:13} {calls[key]:7} calls {seconds:8.3f} s {seconds / run:7.1%} of run {share}")


if __name__ == "__main__":
    main(sys.argv[1])
