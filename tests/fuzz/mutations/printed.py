"""Changes of CSV and of tables in columns of text: fields, units, headings, lines."""

from __future__ import annotations

from random import Random

from tests.fuzz.mutations import nasty
from tests.fuzz.mutations.octets import spoil

_FIELDS = (
    *(
        "",
        "-",
        "NaN",
        "inf",
        "-inf",
        "1e400",
        "-1",
        "0",
        "9223372036854775808",
        "1" * 400,
        "1.2.3",
        "1e18",
        "0x10",
        '"',
    ),
    *(
        "s",
        "ms",
        "us",
        "ns",
        "%",
        "KB",
        "GB/s",
        "1.5KB",
        "99999999ms",
        "-3us",
        "(1 1 1)",
        "(0 0 0)",
        "(9999999999 1 1)",
    ),
    *(
        "[CUDA memcpy HtoD]",
        "[CUDA memset]",
        "f(int) [108]",
        "Tesla T4 (0)",
        "Tesla T4 (99999)",
        "\ufeff",
        "a\rb",
        "1,2",
    ),
    *("A" * 140_000, '"' + "B" * 140_000 + '"', "f(" * 300, "\N{ARABIC-INDIC DIGIT THREE}"),
)
_LINES = (
    *(
        "",
        "==1== NVPROF is profiling process 1, command: x",
        "==1== Profiling result:",
        "==1== Warning: x",
        "\x00",
        "\r",
    ),
    *(
        "No kernels were profiled.",
        '"Start","Duration","Name"',
        "s,ms,",
        "            Type  Time(%)      Time     Calls",
    ),
)


def change(random: Random, data: bytes) -> bytes:
    """Return one change of a field, of a column, or of lines."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    place = random.randrange(min(len(lines), random.choice((6, 6, 10**9))))
    line = lines[place]
    match random.randrange(12):
        case 0:
            del lines[place]
        case 1:
            lines[place:place] = [random.choice(lines)] * random.choice((1, 1, 5, 60))
        case 2:
            lines[place] = random.choice(_LINES)
        case 3:
            lines[place] = line + random.choice((",", ",1", '"', "\r", ',"x', "  x", "\x00", "\u2028"))
        case 4:
            fields = line.split(",")
            random.shuffle(fields)
            lines[place] = ",".join(fields)
        case 5:  # one column of all lines
            column, field = random.randrange(line.count(",") + 1), _field(random, "")
            for number, one in enumerate(lines):
                fields = one.split(",")
                if column < len(fields) and random.random() < 0.9:
                    lines[number] = ",".join([*fields[:column], field, *fields[column + 1 :]])
        case 6:
            return spoil(random, data)
        case 7:
            return data.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-8-sig", "latin-1")), "replace")
        case 8:  # a word of a table without commas
            words = line.split(" ")
            words[random.randrange(len(words))] = _field(random, "")
            lines[place] = " ".join(words)
        case _:
            fields = line.split(",")
            column = random.randrange(len(fields))
            fields[column] = _field(random, fields[column])
            lines[place] = ",".join(fields)
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _field(random: Random, given: str) -> str:
    return random.choice((random.choice(_FIELDS), nasty.text(random), nasty.spoilt_text(random, given)))
