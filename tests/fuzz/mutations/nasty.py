"""Values that programs stumble over."""

from __future__ import annotations

from random import Random

INTEGERS = (
    *(0, 1, 2, 7, 63, 64, 127, 128, 255, 256, 999, 1000, 32_767, 32_768, 65_535, 65_536, 10**6, 10**9, 10**12),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 10**18, 2**62, 2**63 - 2, 2**63 - 1),
)
"""None negative, all of at most 63 bits."""
WIDE = (2**63, 2**64 - 1, 2**64, 10**19, 10**30, 10**400)
FRACTIONS = (
    "0.5",
    "-0.0",
    "1e-400",
    "1e18",
    "9.3e18",
    "1e19",
    "1e308",
    "1.7976931348623157e309",
    "0.1234567890123456789",
)
TEXTS = (
    *(
        "",
        " ",
        "0",
        "-1",
        "x",
        "nan",
        "inf",
        "null",
        "true",
        "1e400",
        "12",
        "0x1f",
        "1_000",
        "\N{FULLWIDTH DIGIT THREE}",
    ),
    *("\x00", "a\x00b", "\x1b[31m", "\x1b]52;c;AAAA\x07", "\x9b2J", "\r", "a\nb", "\t", "\x7f", "\u0085", "\u2028"),
    *("\u202eabc", "\u2066x", "\ufeff", "\U000e0041", "e\u0301\u0301\u0301\u0301", "\U0001f600", "\ufffd", "\ufff9"),
    *(
        "<script>alert(1)</script>",
        "[bold]x[/red]",
        "=1+1",
        "@x",
        "| a | b |",
        "::error::x",
        "%s%n{0}",
        "../../etc",
        "a/b",
    ),
    *("void f<int, std::vector<char> >(int (*)(float))", "_Z1fIiEvT_", "_ZN" + "1a" * 40 + "E", "(" * 60, "a(" * 60),
    *(
        "ProfilerStep#1",
        "ProfilerStep#99999999999999999999",
        "step 3",
        "train",
        "[memory]",
        "Memcpy HtoD (Pageable -> Device)",
    ),
    *(
        "Stream #18446744073709551616",
        "Steps",
        "XLA Ops",
        "XLA Modules",
        "/device:GPU:0",
        "/device:TPU:-1",
        "/host:CPU",
    ),
    *("nccl:all_reduce", "cudaLaunchKernel", "regs:1 grid:0,0,0 block:9,9,9 occ_pct:nan", "size:-1 kind:x", "k=v#k=,#"),
    *('{"a":1}', "[1,2", "9" * 30, "n" * 300, "\N{ARABIC LETTER ALEF}" * 3, "long " * 2000),
)


def integer(random: Random) -> int:
    """Return some number of 64 bits with its sign, most often at a border."""
    value = random.choice(INTEGERS)
    shift = random.choice((0, 0, 0, 1, -1))
    value = min(max(value + shift, 0), 2**63 - 1)
    return -value if random.random() < 0.3 else random.choice((value, value, value, -(2**63)))


def text(random: Random) -> str:
    """Return some text."""
    return random.choice(TEXTS)


def spoilt_text(random: Random, given: str) -> str:
    """Return ``given`` changed a little, or another text."""
    match random.randrange(7):
        case 0:
            return given + text(random)
        case 1:
            return text(random) + given
        case 2:
            return given[: random.randrange(len(given) + 1)]
        case 3:
            return given * random.choice((2, 3, 50))
        case 4:
            return given.swapcase()
        case _:
            return text(random)
