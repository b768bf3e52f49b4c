"""Texts on which a backtracking pattern would take long, made from the pattern itself."""

import re
import re._constants as codes
import re._parser as parser

ENDS = ("", "!", "\n", "\0", "a ")
"""Ends that make a match fail after a good start."""
GENERIC = (
    "a",
    "0",
    " ",
    "a(",
    "::a",
    "a::",
    "[",
    "=,",
    '"',
    "a=",
    "/a",
    "a.",
    "://a",
    "a:",
    "a@",
    "\\",
    "\t",
    "{",
    "-",
    "a,",
)
_ALPHABET = [chr(code) for code in range(128)] + ["é", "µ", "\ud800", "\u2028"]
_MOST_CHARACTERS = 12
_MOST_TEXTS = 90


def units(pattern, most=_MOST_TEXTS):
    """Return pairs of a text that stands once and one that is repeated behind it."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    flags = pattern.flags & ~re.UNICODE
    tree = parser.parse(text, flags)
    characters = _characters(tree, flags)[:_MOST_CHARACTERS]
    found = {("", character): None for character in characters}
    for before, body in _repeats(tree, "", flags):
        for part in (body, *characters):
            found.setdefault((before, part))
        found.setdefault(("", before + body))
        found.setdefault(("", before + body + body))
    for start in _starts(tree, flags):
        found.setdefault(("", start))
    for unit in GENERIC:
        found.setdefault(("", unit))
    usable = [(before, unit) for before, unit in found if unit and len(unit) < 2_000]
    return usable[:: max(1, -(-len(usable) // most))] if len(usable) > most else usable


def texts(pattern, length, most=_MOST_TEXTS):
    """Yield texts of about ``length`` characters, of the kind that the pattern searches."""
    for before, unit in units(pattern, most):
        repeated = before + unit * (max(1, (length - len(before)) // len(unit)))
        for end in ENDS:
            yield _encoded(repeated + end, pattern)


def _encoded(text, pattern):
    return text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")


def _one(code, argument, flags):
    """Return characters that a single piece matches, an ordinary one first."""
    if code is codes.LITERAL:
        return [chr(argument)]
    if code is codes.ANY:
        return ["a", " ", "/"]
    if code in {codes.NOT_LITERAL, codes.IN}:
        chosen = parser.SubPattern(parser.State(), [(code, argument)])
        return _matching(chosen, flags)
    return []


def _matching(chosen, flags):
    import re._compiler as compiler

    state = parser.State()
    state.flags = flags & ~re.DEBUG
    state.str = ""
    chosen.state = state
    try:
        single = compiler.compile(chosen, flags)
    except re.error:  # what only a whole pattern can be
        return ["a"]
    preferred = "aA0 _/.:-,(\"'=<[" + "".join(_ALPHABET)
    return [character for character in dict.fromkeys(preferred) if single.fullmatch(character)][:3]


def _example(tree, flags, least=0):
    """Return a text that a pattern matches, more or less: assertions are left out."""
    return "".join(_example_of(code, argument, flags) for code, argument in tree)


def _example_of(code, argument, flags):
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
        low, high, body = argument
        return _example(body, flags) * max(low, min(1, high))
    if code is codes.SUBPATTERN:
        return _example(argument[3], flags)
    if code is codes.ATOMIC_GROUP:
        return _example(argument, flags)
    if code is codes.BRANCH:
        return _example(argument[1][0], flags)
    if code is codes.ASSERT and argument[0] < 0:  # what stands before
        return _example(argument[1], flags)
    return next(iter(_one(code, argument, flags)), "")


def _inner(code, argument):
    """Return the patterns inside a piece."""
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
        return [argument[2]]
    if code is codes.SUBPATTERN:
        return [argument[3]]
    if code is codes.ATOMIC_GROUP:
        return [argument]
    if code is codes.BRANCH:
        return argument[1]
    if code in {codes.ASSERT, codes.ASSERT_NOT}:
        return [argument[1]]
    return []


def _repeats(tree, before, flags):
    """Yield each part that may be repeated often: what stands before it, and an example of it."""
    for code, argument in tree:
        if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT} and argument[1] > 8:
            yield before, _example(argument[2], flags)
        for part in _inner(code, argument):
            yield from _repeats(part, before, flags)
        before += _example_of(code, argument, flags)


def _starts(tree, flags, depth=0):
    """Return starts of matching texts: a search that starts again at each of them must be short."""
    before = ""
    for code, argument in tree:
        before += _example_of(code, argument, flags)
        yield before
        if code is codes.BRANCH and depth < 3:
            for branch in argument[1]:
                yield from _starts(branch, flags, depth + 1)
        elif code is codes.SUBPATTERN and depth < 3:
            yield from _starts(argument[3], flags, depth + 1)


def _characters(tree, flags):
    """Return characters that pieces of the pattern match, the most frequent first."""
    counts = {}

    def count(part):
        for code, argument in part:
            for character in _one(code, argument, flags):
                counts[character] = counts.get(character, 0) + 1
            for inner in _inner(code, argument):
                count(inner)

    count(tree)
    return sorted(counts, key=lambda character: -counts[character])
