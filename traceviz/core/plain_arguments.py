"""Commands in a form that may be stored: options and plain values, which distinguish runs, without private parts.

``train.py --batch-size 64`` describes a run, ``--token hf_...`` its owner. Numbers, words and switches stay; of a path
only the last part stays. An ellipsis replaces texts, addresses, names of people and machines, random-looking parts,
and every value of an option with a private name.

>>> command = ("/opt/bin/python", "src/train.py", "--batch-size", "64", "--data", "/home/ann/imagenet", "--user=ann")
>>> plain_command(command)
'python train.py --batch-size 64 --data …/imagenet --user=…'
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath

HIDDEN = "…"
"""Text that replaces a private argument."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PREFIXES = (
    r"gh[pousr]_|github_pat_|hf_|sk-|[sr]k_(?:live|test)_|xox[abeprs]-|xapp-|A[KS]IA|AIza|gl(?:pat|ptt|dt|rt|cbt|oas"
    r"|soat|agent|ft)-"
    r"|ya29\.|eyJ|nvapi-|npm_|pypi-|do[opr]_v1_|hv[sb]\.|whsec_|dckr_[op]at_|SG\.|shp(?:at|ca|pa|ss)_|sq0[a-z]{3}-"
    r"|lin_api_"
    r"|sntry[su]_|ATATT3|AGE-SECRET-KEY-1|glsa_|tvly-|wandb_v1_"
)
_ANYWHERE = (
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{30,}"
    r"|A[KS]IA[A-Z0-9]{16}"
    r"|AIza[\w\-]{35}|gl(?:pat|ptt|dt|rt|cbt|oas|soat|agent|ft)-[\w\-]{20,}|dckr_[op]at_[\w\-]{20,}"
    r"|SG\.[\w\-]{16,32}\.[\w\-]{16,64}|xox[abeprs]-[A-Za-z0-9\-]{20,}|nvapi-[\w\-]{20,}|pypi-[\w\-]{50,}"
    r"|sk-(?:proj|ant|svcacct|or|live)-[\w\-]{20,}|sk-[A-Za-z0-9]{32,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|eyJ[\w\-]{8,1000}\.eyJ[\w\-]{8,}(?:\.[\w\-]+)?|hooks\.slack\.com/services/[\w/]{20,}"
    r"|discord(?:app)?\.com/api/webhooks/\d+/[\w\-]{20,}"
    r"|(?:gsk_|xai-|sgp_|rpa_|r8_|pplx-|dapi)[A-Za-z0-9]{30,}"
)
CREDENTIAL_SHAPE = rf"(?<![A-Za-z0-9])(?:{_PREFIXES})[A-Za-z0-9_\-]{{12,}}[\w.\-]*|{_ANYWHERE}"
"""Access tokens of well-known services, by how they start. A letter or digit may precede those that are long enough."""
CREDENTIAL_SIGNS = (
    *[
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "hf_",
        "sk-",
        "k_live_",
        "k_test_",
        "xox",
        "xapp-",
        "akia",
        "asia",
        "aiza",
        "ya29.",
        "eyj",
        "nvapi-",
        "npm_",
    ],
    *[
        "pypi-",
        "_v1_",
        "hvs.",
        "hvb.",
        "whsec_",
        "dckr_",
        "sg.",
        "shpat_",
        "shpca_",
        "shppa_",
        "shpss_",
        "sq0",
        "lin_api_",
        "sntrys_",
        "sntryu_",
        "atatt3",
    ],
    *[
        "age-secret",
        "glsa_",
        "tvly-",
        "hooks.slack",
        "webhooks/",
        "gsk_",
        "xai-",
        "sgp_",
        "rpa_",
        "r8_",
        "pplx-",
        "dapi",
    ],
    *["glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "gloas-", "glsoat-", "glagent-", "glft-"],
)
"""Lower-case texts. Every such token contains one of them."""

_SECRET = _words(
    "accesskey apikey auth authorization bearer cert cookie cred credential credentials key pass passphrase "
    "passwd password pat private privatekey pw pwd secret secrets token"
)
"""Words in an option's name that hide its value, even a number."""
_PERSONAL = _words(
    "account addr address author cc client comment company contact customer description email endpoint entity from "
    "group host hostname hosts id ids ip keys login mail message msg name node nodelist nodename nodes note notes org "
    "organisation organization owner patient people person phone project prompt proxy recipient run runname sender "
    "server session subject tag tags team tenant text title to uri url user userid username users webhook wandb"
)
"""Words in an option's name that hide its value, except short numbers (``--device-id 1``)."""
_NAMED_THINGS = _words("arch backend backbone data dataset loss model optim optimizer policy scheduler task")
"""Things that may have a name: ``--model-name resnet50``."""

_NUMBER = r"[+-]?\d[\d_]{0,14}(?:\.\d{0,17})?(?:[eE][+-]?\d{1,3})?(?:[kKMGTm]?i?[bB]?|[smhd]|ms|us|ns|%)"
_NUMBERS = re.compile(
    rf"{_NUMBER}(?:[,x:]{_NUMBER}){{0,2}}|{_NUMBER}(?:,{_NUMBER}){{3,31}}|v?\d{{1,4}}(?:\.\d{{1,4}}){{2}}"
)
_SHORT_NUMBER = re.compile(r"[+-]?\d{1,4}(?:\.\d{1,4})?")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9]*(?:[._+-][A-Za-z0-9]+)*")
_LONGEST_WORD, _LONGEST_PART, _MOST_DIGITS = 40, 24, 10
_NAME = re.compile(r"--?[A-Za-z][A-Za-z0-9]*(?:[._-][A-Za-z0-9]+)*(?:/[A-Za-z0-9_.-]+)?")
_SHORT_OPTION = re.compile(r"-[A-Za-z]{1,3}|-[A-Za-z]\d{1,4}")
_KEY = re.compile(r"[+~]{0,2}[A-Za-z_][\w-]*(?:[./][\w-]+)*")
"""Key of ``trainer.max_epochs=3`` and ``OMP_NUM_THREADS=4``."""
_PATH = re.compile(r"[~.…]?[/\\]|[~.]+$|[A-Za-z]:\\|[\w.+-]+[/\\]")
_HOME = re.compile(
    r"(?:/(?:home|Users|nethome|users|u)/[^/]+|/root|~[^/]*|[A-Za-z]:\\Users\\[^\\]+)[/\\]?$", re.IGNORECASE
)
_FILE = re.compile(r"[\w.+-]+\.(?:cfg|conf|gin|ini|ipynb|json|jsonl|py|sh|toml|ya?ml)")
"""Files that programs receive without an option."""
_SCRIPT = re.compile(r"\.(?:py|sh)$")
_INTERPRETER = re.compile(r"(?:python|pypy)[\d.]*|(?:ba|da|k|z)?sh|perl|ruby|node")
_CODE = re.compile(r"-[A-Za-z]{0,3}[ce]")
"""Options of an interpreter that precede code."""
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,}", re.IGNORECASE)
_CHANGES = re.compile(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)")
_MOST_CHANGES = 3
"""Most places in a word where letters and digits meet: ``efficientnetv2b0`` has three."""
_LONGEST = 500
_SHORT_NAME = 4
_COMMON = _words("app data docker guest home local localhost model root runner test train user users work")
"""Names of users and machines that are also words of programs, and identify no one."""


def plain_command(command: Sequence[str], names: Collection[str] = ()) -> str:
    """Return ``command`` on one line, with ``…`` in place of private parts.

    Args:
        command: The program and its arguments.
        names: Names of people and machines, which are private wherever they occur: :func:`names_here`.
    """
    known = tuple(name.lower() for name in names)
    shown = " ".join(_shown(command, known))
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1].rpartition(' ')[0]} {HIDDEN}"


def is_plain(line: str) -> bool:
    """Return whether ``line`` can be a result of :func:`plain_command`, which would leave it unchanged."""
    return plain_command(line.split(" ")) == line


def names_here(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the user and the machine, from the environment and the system."""
    home = PurePath(environment.get("HOME", "")).name
    host = socket.gethostname()
    found = (
        *(environment.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")),
        home,
        host,
        host.partition(".")[0],
    )
    return tuple(dict.fromkeys(name for name in found if len(name) >= 3 and name.lower() not in _COMMON))


def _shown(command: Sequence[str], names: tuple[str, ...]) -> Iterator[str]:
    program, *arguments = command or ("",)
    yield _file(PurePath(program).name, names)
    runs_code = _INTERPRETER.fullmatch(PurePath(program).name) is not None
    option, script = "", ""
    for argument in arguments:
        named, equals, text = argument.partition("=")
        if argument.startswith("-") and not _NUMBERS.fullmatch(argument):
            yield f"{_option(named, names)}{equals}{_value(text, named, names) if equals else ''}"
            option = "" if equals else named
        elif runs_code and not script and _CODE.fullmatch(option):
            yield HIDDEN
            option, script = "", HIDDEN
        elif not script and _SCRIPT.search(argument):
            yield _file(PurePath(argument).name, names)
            option, script = "", argument
        elif option:
            yield _value(argument, option, names)
            option = ""
        elif equals and (named == HIDDEN or _KEY.fullmatch(named)):
            yield f"{named if _is_word(named, names, _KEY) else HIDDEN}={_value(text, named, names)}"
        else:
            yield _positional(argument, names)


def _option(name: str, names: tuple[str, ...]) -> str:
    if name == "--" or _SHORT_OPTION.fullmatch(name):
        return name
    if name.startswith("--") or "_" in name:
        return name if _is_word(name.lstrip("-"), names) and _NAME.fullmatch(name) else f"--{HIDDEN}"
    letter = name[1:2] if re.match(r"-[A-Za-z]", name) else ""
    return f"-{letter}{HIDDEN}"  # a value may follow the letter: -pSECRET


def _positional(text: str, names: tuple[str, ...]) -> str:
    """Return an argument without an option. Only numbers, settings files and interpreters are not private."""
    last = re.split(r"[/\\]", text)[-1]
    if _NUMBERS.fullmatch(text):
        return _value(text, "", names)
    return _file(last, names) if _FILE.fullmatch(last) or _INTERPRETER.fullmatch(last) else HIDDEN


def _value(text: str, option: str, names: tuple[str, ...]) -> str:
    words = re.split(r"[-_./]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", option).lower().lstrip("-+~"))
    if not _SECRET.isdisjoint(words):
        return HIDDEN
    is_named_thing = not _NAMED_THINGS.isdisjoint(words) and not {*words} & (_PERSONAL - {"name"})
    if not is_named_thing and not _PERSONAL.isdisjoint(words):
        return text if _SHORT_NUMBER.fullmatch(text) else HIDDEN
    if _NUMBERS.fullmatch(text):
        return text if max(map(len, re.findall(r"\d+", text.partition(".")[0]))) <= _MOST_DIGITS else HIDDEN
    if "://" in text or "@" in text:
        return HIDDEN
    if _PATH.match(text):
        last = re.split(r"[/\\]", text.rstrip("/\\"))[-1]
        if _HOME.fullmatch(text) or not last.strip(".~"):
            return HIDDEN
        shown = _file(last, names)
        return shown if shown == HIDDEN else f"{HIDDEN}/{shown}"
    return text if all(_is_word(part, names) or _NUMBERS.fullmatch(part) for part in text.split(",")) else HIDDEN


def _file(name: str, names: tuple[str, ...]) -> str:
    """Return the name of a file or folder, which may start with a dot or have underscores around it."""
    return name if _is_word(name.strip("._-"), names) and re.fullmatch(r"[\w.+-]+", name, re.ASCII) else HIDDEN


def _is_word(text: str, names: tuple[str, ...], shape: re.Pattern[str] = _WORD) -> bool:
    """Return whether a text is one or more joined words that name no person and do not look random."""
    plain = len(text) <= _LONGEST_WORD and shape.fullmatch(text) is not None
    if not plain or _UUID.fullmatch(text) or re.search(CREDENTIAL_SHAPE, text):
        return False
    parts = re.split(r"[._+/-]", text)
    folded = text.lower()
    # Short names are parts of many words (``ann`` in ``channel``): they count as whole parts only.
    has_name = any(name in folded if len(name) > _SHORT_NAME else name in map(str.lower, parts) for name in names)
    looks_random = any(
        len(part) > _LONGEST_PART
        or _HEX.fullmatch(part)
        or re.search(rf"\d{{{_MOST_DIGITS + 1}}}", part)
        or len(_CHANGES.findall(part)) > _MOST_CHANGES
        for part in parts
    )
    return any(map(str.isalpha, text)) and not has_name and not looks_random
