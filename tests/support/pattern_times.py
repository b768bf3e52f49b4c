"""Program: looks for texts on which a pattern of the package takes more than linear time, and prints what it found.

Arguments: which part of the patterns (``0/20``: the first of twenty), and how many kinds of texts for each.
"""

import resource
import signal
import sys
import time

from tests.support.package_patterns import patterns
from tests.support.worst_cases import texts

SHORT, LONG, HUGE = 8_000, 64_000, 1_000_000
"""Characters of the texts that are compared, and of the longest."""
_MOST_RATIO = 24
"""Of the time for eight times the text: linear time is 8, quadratic 64."""
_SUSPICIOUS_S = 0.004
_MOST_S = {SHORT: 1.0, LONG: 4.0, HUGE: 20.0}
"""Processor time: fifty times and more of what linear patterns take."""


class _TooLateError(Exception):
    pass


def _stop(_number, _frame):
    raise _TooLateError


def _calls(found):
    pattern = found.pattern
    return [pattern.match, pattern.fullmatch] if found.whole else [lambda text: sum(1 for _ in pattern.finditer(text))]


def _seconds(call, text, length, times=1):
    best = float("inf")
    for _ in range(times):
        signal.setitimer(signal.ITIMER_PROF, _MOST_S[length])
        begin = time.thread_time()
        try:
            call(text)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        best = min(best, time.thread_time() - begin)
    return best


def fault(found, bound, most):
    """Return the fault of a pattern, or nothing: it sees ``bound`` characters at most (``None``: any number)."""
    worst = (0.0, "", None)
    try:
        for call in _calls(found):
            for short, long in zip(texts(found.pattern, SHORT, most), texts(found.pattern, LONG, most), strict=True):
                if bound is not None:
                    _seconds(call, short[:bound], SHORT)
                    continue
                seconds = _seconds(call, short, SHORT)
                if seconds > _SUSPICIOUS_S:
                    seconds = _seconds(call, short, SHORT, 3)
                longer = _seconds(call, long, LONG, 3) if seconds > _SUSPICIOUS_S else 0.0
                if longer > _MOST_RATIO * seconds:  # or another process had the processor: once more
                    seconds, longer = _seconds(call, short, SHORT, 20), _seconds(call, long, LONG, 20)
                if longer > _MOST_RATIO * seconds:
                    return f"{seconds:.4f} s become {longer:.4f} s with {short[:60]!a}"
                worst = max(worst, (seconds, short, call), key=lambda one: one[0])
        if worst[2] is not None:
            text = worst[1]
            middle = text[len(text) // 4 : len(text) // 2]
            worst[2](text[:1])
            _seconds(worst[2], text[: len(text) // 2] + middle * (HUGE // len(middle)) + text[len(text) // 2 :], HUGE)
    except _TooLateError:
        return "takes too long"
    return None


def main(part, most, bounds):
    """Print a line for each pattern that is not linear, and how many there were."""
    resource.setrlimit(resource.RLIMIT_CPU, (1_200, 1_200))
    signal.signal(signal.SIGPROF, _stop)
    every, unknown = patterns()
    number, parts = map(int, part.split("/"))
    for found in every[number::parts]:
        bound = next((bound for name, bound in bounds.items() if found.where.startswith(name)), None)
        if (wrong := fault(found, bound, most)) is not None:
            sys.stdout.write(f"{found.where} {wrong}\n")
    sys.stdout.write("\n".join(["unknown", *unknown, f"patterns {len(every)}", ""]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), dict(zip(sys.argv[3::2], map(int, sys.argv[4::2]), strict=True)))
